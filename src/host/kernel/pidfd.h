// Processes held as descriptors, so that a recycled pid cannot be signalled by mistake.
// Thread: any. Source: pidfd_open(2), pidfd_send_signal(2), waitid(2).
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace spillway::host {

// Opens without allocation, for threads that must not wait for memory. An empty result is an error: see errno.
UniqueFd try_open_pidfd(pid_t pid) noexcept;
bool try_send_signal(int pidfd, int signal) noexcept;

/// kNotFound: the process does not exist (any more).
Result<UniqueFd> open_pidfd(pid_t pid);

/// kNotFound: the process has ended. kForbidden: this process may not signal it.
Outcome send_signal(int pidfd, int signal);

struct ProcessEnd {
  std::int32_t exit_code = 0;  // 128 + signal if killed
  std::int32_t signal = 0;     // 0: the process exited by itself
};

/// Collects a child that has ended; nullopt while it runs. Errors: not our child.
Result<std::optional<ProcessEnd>> reap(int pidfd);

}  // namespace spillway::host
