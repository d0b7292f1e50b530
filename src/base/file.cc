#include "base/file.h"

#include "base/file_draft.h"
#include "base/unique_fd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace spillway {
namespace {

ErrorCode code_of(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kForbidden;
    case ENOENT:
    case ENODEV:
    case ESRCH:
      return ErrorCode::kNotFound;
    case EEXIST:
      return ErrorCode::kAlreadyExists;
    case EBUSY:
      return ErrorCode::kConflict;
    case EINVAL:
      return ErrorCode::kInvalid;
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
      return ErrorCode::kServiceUnavailable;
    default:
      return ErrorCode::kInternalError;
  }
}

}  // namespace

Error errno_error(std::string_view at, int error) {
  return Error{code_of(error), std::generic_category().message(error), std::string(at)};
}

Result<std::string> read_open_file(int fd, std::string_view at) {
  std::string text;
  std::array<char, 16 * 1024> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
  for (;;) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(at, errno);
    if (got == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
    if (text.size() > kFileBytesMax) return invalid(at, "longer than {} bytes", kFileBytesMax);
  }
}

Result<std::string> read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(path, errno);
  return read_open_file(fd.get(), path);
}

Outcome write_all(int fd, std::string_view text, std::string_view at) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error(at, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 253 && name != "." && name != ".." && !name.contains('/') &&
         !name.contains('\0');
}

Outcome make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return errno_error(path, error.value());
  return {};
}

Outcome sync_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return errno_error(folder, errno);
  return {};
}

Outcome replace_file(const std::string& path, std::string_view text) {
  SPILLWAY_TRY(draft, FileDraft::write(path, text));
  SPILLWAY_TRY_VOID(draft.place());
  return sync_folder_of(path);
}

}  // namespace spillway
