// The first process of a container, shared by the loop and the acting thread: its termination.
// Thread: any. Source: pid_namespaces(7), signals and the init process; proc_pid_status(5).
#pragma once

#include "base/unique_fd.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::host {

/// The effect of a signal on a process, from its /proc/PID/status, if it were no first process of a namespace.
enum class SignalFate : std::uint8_t {
  kEnds,     // the signal ends the process: neither caught nor ignored nor blocked
  kBlocked,  // SIGTERM is blocked, and would end the process later; or the process waits for it
  kTaken,    // SIGTERM is caught or ignored; or the text has no such line
};

struct ContainerHandle {
  std::string name;
  UniqueFd pidfd;
  UniqueFd directory;  // the cgroup's directory in the hierarchy of the memory controller
  /// /proc/PID/status of a process that is the first of its pid namespace; else empty.
  UniqueFd status;
  UniqueFd call;                        // /proc/PID/syscall of that process
  std::atomic<bool> running{true};      // the container's program has begun
  std::atomic<bool> terminated{false};  // SIGTERM has been sent
  std::atomic<bool> ended_for{false};   // by SIGKILL in place of SIGTERM
  /// SIGTERM was sent while it was blocked for a moment, as in the middle of a fork: see recheck().
  std::atomic<bool> in_doubt{false};

  /// Asks it to end by SIGTERM, once. The kernel drops a signal that the first process of a pid namespace has not
  /// prepared for, so such a process gets SIGKILL at once: it ends as SIGTERM would have ended it anywhere else.
  /// One that waits for signals, as an init of containers does, gets SIGTERM. Neither allocates nor opens anything.
  void terminate() noexcept;
  /// The kernel drops such a blocked signal of a first process when it is unblocked. Whether it has: then the process
  /// gets SIGKILL now. Clears `in_doubt` once nothing is in doubt any more. Neither allocates nor opens anything.
  void recheck() noexcept;

 private:
  SignalFate fate_of_sigterm(std::string_view status_text) const noexcept;
};

SignalFate fate_of(std::string_view status, int signal) noexcept;

/// True if a process is in sigwait(), by its /proc/PID/syscall: a signal for which it waits does not show as blocked
/// then. True also if the text cannot be parsed.
bool waits_for_signals(std::string_view call) noexcept;

/// True if the signal waits until the process unblocks it.
bool is_pending(std::string_view status, int signal) noexcept;

}  // namespace spillway::host
