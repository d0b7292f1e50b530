#include "host/pods/termination_message.h"

#include "base/unique_fd.h"
#include "policy/containers/container_statuses.h"
#include "policy/containers/utf8_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

namespace spillway::host {
namespace {

constexpr std::size_t kLogEndMax = 64 * 1024;

/// The last bytes of a file; nullopt: it cannot be read.
std::optional<std::string> read_end(const std::string& path, std::size_t most) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return std::nullopt;
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  if (size < 0) return std::nullopt;
  const off_t begin = std::max<off_t>(0, size - static_cast<off_t>(most));
  std::string text(static_cast<std::size_t>(size - begin), '\0');
  const ssize_t count = ::pread(fd.get(), text.data(), text.size(), begin);
  text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return text;
}

/// The end of the log as whole lines; a single longer line is cut.
std::string end_of_log(const std::string& path) {
  std::string text = read_end(path, kLogEndMax).value_or("");
  if (text.size() == kLogEndMax) text.erase(0, text.find('\n') + 1);
  return text;
}

}  // namespace

std::string read_termination_message(const EndedRun& run) {
  containers::MessageSources sources{.runtime = run.message,
                                     .file = std::nullopt,
                                     .from_logs = run.from_logs,
                                     .exit_code = run.exit_code,
                                     .reason = run.reason,
                                     .log = {}};
  if (!run.message_file.empty()) sources.file = read_end(run.message_file, containers::kMessageFileMax);
  if (run.from_logs && run.exit_code != 0) sources.log = end_of_log(run.log);
  return containers::utf8_text(containers::termination_message(sources));
}

}  // namespace spillway::host
