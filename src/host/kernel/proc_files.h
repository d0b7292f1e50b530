// The contents of /proc about the whole machine: process counts and limits, and the identity of a process. The parsers
// are pure. Thread: any. Source: kernel document "proc.rst"; spec "Node agent", 10.2 (node.rlimit).
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

/// The total in the fourth field of /proc/loadavg ("0.00 0.01 0.05 1/180 4711" → 180). kInvalid otherwise.
Result<std::int64_t> parse_loadavg_processes(std::string_view text);

/// The first field of /proc/uptime. kInvalid otherwise.
Result<Duration> parse_uptime(std::string_view text);

/// PRETTY_NAME of /etc/os-release, unquoted; nullopt if there is none.
std::optional<std::string> parse_pretty_name(std::string_view os_release);

struct ProcessLimits {
  std::int64_t max_pid = 0;            // min(kernel.pid_max, kernel.threads-max)
  std::int64_t running_processes = 0;  // and threads
};

Result<ProcessLimits> read_process_limits();

}  // namespace spillway::host
