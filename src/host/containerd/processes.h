// Other processes, by the number and the moment of their start. Thread: any; has_ended_within() waits.
// Source: proc_pid_stat(5); pidfd_open(2).
#pragma once

#include "base/time.h"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

/// The start of a process in ticks since the boot; nullopt: there is no such process.
std::optional<std::uint64_t> start_ticks(pid_t pid);

/// True if the process has ended within the time.
bool has_ended_within(int pidfd, Duration limit);

/// The words of a process's command line; none: it has ended, or has none.
std::vector<std::string> command_line(pid_t pid);

}  // namespace spillway::host
