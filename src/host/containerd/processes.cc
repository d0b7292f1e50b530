#include "host/containerd/processes.h"

#include "host/kernel/kernel_file.h"
#include "runtime/clock.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>

namespace spillway::host {
namespace {

constexpr int kStartTimeField = 22;  // field of /proc/PID/stat

}  // namespace

std::optional<std::uint64_t> start_ticks(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid));
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  const std::size_t name_end = rest.rfind(')');  // the name may hold anything
  if (name_end == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(std::min(name_end + 2, rest.size()));
  for (int field = 3; field < kStartTimeField; ++field) rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
  return parse_number(rest.substr(0, rest.find(' ')));
}

bool has_ended_within(int pidfd, Duration limit) {
  pollfd wait{pidfd, POLLIN, 0};
  const Instant deadline = runtime::RealClock::read().mono + limit;
  for (;;) {
    const Duration left = std::max<Duration>(deadline - runtime::RealClock::read().mono, Duration::zero());
    const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
    const int ready = ::poll(&wait, 1, static_cast<int>(millis));
    if (ready > 0) return true;
    if (ready == 0 && left == Duration::zero()) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

std::vector<std::string> command_line(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/cmdline", pid));
  std::vector<std::string> words;
  if (!text) return words;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    words.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return words;
}

}  // namespace spillway::host
