#include "apps/process/process_metrics.h"

#include "host/kernel/kernel_file.h"
#include "host/kernel/proc_files.h"
#include "runtime/clock.h"
#include "telemetry/exposition.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace spillway::apps {
namespace {

using telemetry::Exposition;
using Type = Exposition::Type;

constexpr double kMicrosPerSecond = 1e6;
constexpr int kStartField = 22;  // index of starttime in /proc/self/stat, from 1

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / kMicrosPerSecond;
}

/// Fields of /proc/self/stat behind the name in parentheses start with the third.
std::optional<std::uint64_t> start_ticks() {
  const auto text = read_file("/proc/self/stat");
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  const std::size_t name_end = rest.rfind(") ");
  if (name_end == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(name_end + 2);
  for (int field = 3; field < kStartField; ++field) {
    const std::size_t blank = rest.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(blank + 1);
  }
  return host::parse_number(rest.substr(0, rest.find(' ')));
}

std::optional<double> start_time() {
  const auto ticks = start_ticks();
  const auto uptime = read_file("/proc/uptime");
  if (!ticks || !uptime) return std::nullopt;
  const auto up = host::parse_uptime(*uptime);
  const long per_second = ::sysconf(_SC_CLK_TCK);
  if (!up || per_second <= 0) return std::nullopt;
  const std::chrono::duration<double> now = runtime::RealClock::read().wall.time_since_epoch();
  const double boot = now.count() - std::chrono::duration<double>(*up).count();
  return boot + static_cast<double>(*ticks) / static_cast<double>(per_second);
}

void write(Exposition& out, std::string_view name, Type type, std::string_view help, std::optional<double> value) {
  if (!value) return;
  out.family(name, type, help);
  out.sample({}, *value);
}

std::optional<double> open_descriptors() {
  std::error_code error;
  double found = -1;  // the descriptor that reads the directory is not counted
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end; it.increment(error)) {
    ++found;
  }
  return error ? std::nullopt : std::optional(found);
}

}  // namespace

std::string process_metrics() {
  Exposition out;
  rusage usage = {};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    write(out, "process_cpu_seconds_total", Type::kCounter, "Total user and system CPU time spent in seconds.",
          seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
  }
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    write(out, "process_max_fds", Type::kGauge, "Maximum number of open file descriptors.",
          static_cast<double>(files.rlim_cur));
  }
  write(out, "process_open_fds", Type::kGauge, "Number of open file descriptors.", open_descriptors());
  if (const auto text = read_file("/proc/self/statm")) {
    const std::string_view all = *text;
    const std::size_t blank = std::min(all.find(' '), all.size() - 1);
    const std::string_view rest = all.substr(blank + 1);
    const auto pages = host::parse_number(all.substr(0, blank));
    const auto resident = host::parse_number(rest.substr(0, rest.find(' ')));
    const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
    const auto bytes = [page](std::optional<std::uint64_t> count) {
      return count ? std::optional(static_cast<double>(*count) * page) : std::nullopt;
    };
    write(out, "process_resident_memory_bytes", Type::kGauge, "Resident memory size in bytes.", bytes(resident));
    write(out, "process_virtual_memory_bytes", Type::kGauge, "Virtual memory size in bytes.", bytes(pages));
  }
  write(out, "process_start_time_seconds", Type::kGauge, "Start time of the process since unix epoch in seconds.",
        start_time());
  return out.text();
}

}  // namespace spillway::apps
