#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace spillway::host {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

}  // namespace

Result<std::string> read_file_at(int directory, const std::string& name) {
  const UniqueFd fd(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(name, errno);
  return read_open_file(fd.get(), name);
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
