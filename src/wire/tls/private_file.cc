#include "wire/tls/private_file.h"

#include "base/unique_fd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace spillway::wire {

namespace {

constexpr std::size_t kFileBytesMax = std::size_t{4} * 1024 * 1024;
constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;
constexpr mode_t kOpenToOthers = S_IWGRP | S_IRWXO;

Error system_error(const std::string& path, int error) {
  const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInternalError;
  return Error{code, std::generic_category().message(error), path};
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Whoever may be trusted with secrets: this process's user, and the one who may do everything anyway.
bool is_ours(const struct stat& found) {
  return found.st_uid == ::geteuid() || found.st_uid == 0;
}

Result<std::string> read_open(const UniqueFd& file, const std::string& path) {
  if (file.get() < 0) return system_error(path, errno);
  std::string text;
  std::array<char, 16 * 1024> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, errno);
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > kFileBytesMax) return invalid(path, "larger than {} bytes", kFileBytesMax);
  }
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  return read_open(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), path);
}

Result<std::string> read_private_file(const std::string& path) {
  // Non-blocking: a pipe in its place must not hold anybody up.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0 && errno == ELOOP) return invalid(path, "is a symbolic link, expected a file");
  struct stat found{};
  if (file.get() < 0 || ::fstat(file.get(), &found) != 0) return system_error(path, errno);
  if (!S_ISREG(found.st_mode)) return invalid(path, "expected a file");
  if (!is_ours(found)) return invalid(path, "belongs to user {}, expected {} or root", found.st_uid, ::geteuid());
  if ((found.st_mode & kOpenToOthers) != 0) {
    return invalid(path, "is open to others (mode {:04o}), expected 0600", found.st_mode & 07777U);
  }
  return read_open(file, path);
}

Outcome write_private_file(const std::string& path, std::string_view text) {
  std::string draft = path + ".XXXXXX";
  UniqueFd file(::mkostemp(draft.data(), O_CLOEXEC));  // exclusively, with mode 0600
  if (file.get() < 0) return system_error(path, errno);
  const bool written = ::fchmod(file.get(), 0600) == 0 && write_all(file.get(), text) && ::fsync(file.get()) == 0 &&
                       file.close() && ::rename(draft.c_str(), path.c_str()) == 0;
  if (written) return {};
  const int error = errno;
  ::unlink(draft.c_str());
  return system_error(path, error);
}

Outcome make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return system_error(path, errno);
  const UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.get() < 0 && (errno == ELOOP || errno == ENOTDIR)) return invalid(path, "expected a folder, not a link");
  struct stat found{};
  if (folder.get() < 0 || ::fstat(folder.get(), &found) != 0) return system_error(path, errno);
  if (!is_ours(found)) return invalid(path, "belongs to user {}, expected {} or root", found.st_uid, ::geteuid());
  if ((found.st_mode & kWritableByOthers) != 0) {
    return invalid(path, "others may write into it (mode {:04o}), expected 0700", found.st_mode & 07777U);
  }
  return {};
}

}  // namespace spillway::wire
