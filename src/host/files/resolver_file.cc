#include "host/files/resolver_file.h"

#include "base/file.h"
#include "base/unique_fd.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <string_view>

namespace spillway::host {
namespace {

/// The error in Go's form, which begins with a small letter.
Error in_go_words(std::string_view call, const std::string& path, Error why) {
  if (!why.message.empty()) why.message.front() = static_cast<char>(std::tolower(why.message.front()));
  return Error{why.code, fmt::format("{} {}: {}", call, path, why.message), {}};
}

}  // namespace

Result<std::string> read_resolver_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return in_go_words("open", path, errno_error(path, errno));
  Result<std::string> text = read_open_file(file.get(), path);
  if (!text) return in_go_words("read", path, text.error());
  return text;
}

}  // namespace spillway::host
