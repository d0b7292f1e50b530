#include "host/kernel/proc_files.h"

#include "host/kernel/kernel_file.h"

#include <algorithm>
#include <limits>

namespace spillway::host {
namespace {

constexpr std::string_view kPrettyNameKey = "PRETTY_NAME=";

Result<std::int64_t> read_count(const std::string& path) {
  SPILLWAY_TRY(text, read_file(path));
  const std::optional<std::uint64_t> value = parse_number(text);
  if (!value || *value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return invalid(path, "\"{}\" is not a number", std::string_view(text).substr(0, 64));
  return static_cast<std::int64_t>(*value);
}

}  // namespace

Result<std::int64_t> parse_loadavg_processes(std::string_view text) {
  std::string_view rest = text;
  for (int field = 0; field < 3; ++field) {
    const std::size_t blank = rest.find(' ');
    if (blank == std::string_view::npos) return invalid("/proc/loadavg", "fewer than four fields");
    rest.remove_prefix(blank + 1);
  }
  const std::string_view fourth = rest.substr(0, rest.find(' '));
  const std::size_t slash = fourth.find('/');
  if (slash == std::string_view::npos) return invalid("/proc/loadavg", "\"{}\" is not running/total", fourth);
  const std::optional<std::uint64_t> total = parse_number(fourth.substr(slash + 1));
  if (!total || *total > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return invalid("/proc/loadavg", "\"{}\" is not running/total", fourth);
  return static_cast<std::int64_t>(*total);
}

Result<Duration> parse_uptime(std::string_view text) {
  const std::string_view field = text.substr(0, text.find(' '));
  const std::size_t point = field.find('.');
  const std::optional<std::uint64_t> whole = parse_number(field.substr(0, point));
  const std::optional<std::uint64_t> rest =
      point == std::string_view::npos ? std::optional<std::uint64_t>() : parse_number(field.substr(point + 1));
  constexpr std::uint64_t kSecondsMax = 1ULL << 32U;
  if (!whole || !rest || *whole > kSecondsMax || field.size() - point != 3)
    return invalid("/proc/uptime", "\"{}\" is no number of seconds", field.substr(0, 32));
  return Duration(seconds(*whole)) + milliseconds(*rest * 10);
}

std::optional<std::string> parse_pretty_name(std::string_view os_release) {
  while (!os_release.empty()) {
    std::string_view line = take_line(os_release);
    if (!line.starts_with(kPrettyNameKey)) continue;
    line.remove_prefix(kPrettyNameKey.size());
    const bool quoted =
        line.size() >= 2 && (line.front() == '"' || line.front() == '\'') && line.back() == line.front();
    return std::string(quoted ? line.substr(1, line.size() - 2) : line);
  }
  return std::nullopt;
}

Result<ProcessLimits> read_process_limits() {
  SPILLWAY_TRY(pid_max, read_count("/proc/sys/kernel/pid_max"));
  SPILLWAY_TRY(threads_max, read_count("/proc/sys/kernel/threads-max"));
  SPILLWAY_TRY(text, read_file("/proc/loadavg"));
  SPILLWAY_TRY(running, parse_loadavg_processes(text));
  return ProcessLimits{std::min(pid_max, threads_max), running};
}

}  // namespace spillway::host
