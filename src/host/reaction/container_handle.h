// The first process of a container, as the loop and the acting thread share it: how it is asked to end.
// Thread: any. Source: pid_namespaces(7), signals and the init process; proc_pid_status(5).
#pragma once

#include "base/unique_fd.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::host {

struct ContainerHandle {
  std::string name;
  UniqueFd pidfd;
  UniqueFd directory;  // of its cgroup, in the hierarchy of the memory controller
  /// /proc/PID/status of a process that is the first of its pid namespace; else empty.
  UniqueFd status;
  std::atomic<bool> running{true};      // its program has begun
  std::atomic<bool> terminated{false};  // it has been asked to end
  std::atomic<bool> ended_for{false};   // by SIGKILL in place of SIGTERM

  /// Asks it to end by SIGTERM, once. The kernel drops a signal that the first process of a pid namespace has not
  /// prepared for, so such a process gets SIGKILL at once: it ends as SIGTERM would have ended it anywhere else.
  /// Neither allocates nor opens anything.
  void terminate() noexcept;
};

/// Would this signal end the process whose /proc/PID/status this is, if it were no first process: it is neither caught
/// nor ignored nor blocked? False if the text does not say.
bool has_default_action(std::string_view status, int signal) noexcept;

}  // namespace spillway::host
