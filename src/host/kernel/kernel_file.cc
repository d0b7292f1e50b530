#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

namespace spillway::host {
namespace {

constexpr std::size_t kFileBytesMax = 8U << 20;
constexpr std::string_view kBlank = " \t\r\n";

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

Result<std::string> read_file_at(int directory, const std::string& name) {
  const UniqueFd fd(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(name, errno);
  std::string text;
  std::array<char, 4096> chunk;
  for (;;) {
    const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(name, errno);
    if (got == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
    if (text.size() > kFileBytesMax) return invalid(name, "longer than {} bytes", kFileBytesMax);
  }
}

Result<std::string> read_file(const std::string& path) {
  return read_file_at(AT_FDCWD, path);
}

Outcome write_file_at(int directory, const std::string& name, std::string_view text) {
  const UniqueFd fd(::openat(directory, name.c_str(), O_WRONLY | O_CLOEXEC | O_TRUNC));
  if (!fd) return errno_error(name, errno);
  ssize_t wrote = 0;
  do {
    wrote = ::write(fd.get(), text.data(), text.size());
  } while (wrote < 0 && errno == EINTR);
  if (wrote < 0) return errno_error(name, errno);
  if (static_cast<std::size_t>(wrote) != text.size()) return invalid(name, "short write of \"{}\"", text);
  return {};
}

Result<HeldFile> HeldFile::open_at(int directory, const std::string& name) {
  HeldFile file;
  file.fd_.reset(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.fd_) return errno_error(name, errno);
  file.name_ = name;
  return file;
}

Result<std::string_view> HeldFile::read(char* buffer, std::size_t size) const {
  std::size_t filled = 0;
  for (;;) {
    const ssize_t got = ::pread(fd_.get(), buffer + filled, size - filled, static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(name_, errno);
    if (got == 0) return std::string_view(buffer, filled);
    filled += static_cast<std::size_t>(got);
    if (filled == size) return invalid(name_, "longer than {} bytes", size);
  }
}

Outcome save_file(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new";
  const UniqueFd file(::open(fresh.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
  if (!file) return errno_error(fresh, errno);
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0) return errno_error(fresh, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return errno_error(path, errno);
  return {};
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return std::nullopt;
  text = text.substr(first, text.find_last_not_of(kBlank) - first + 1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace spillway::host
