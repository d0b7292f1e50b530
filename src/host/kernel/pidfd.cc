#include "host/kernel/pidfd.h"

#include "host/kernel/kernel_file.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace spillway::host {
namespace {

constexpr idtype_t kByPidfd = static_cast<idtype_t>(3);  // P_PIDFD; older C libraries do not name it

}  // namespace

UniqueFd try_open_pidfd(pid_t pid) noexcept {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
}

bool try_send_signal(int pidfd, int signal) noexcept {
  return ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0U) == 0;
}

Result<UniqueFd> open_pidfd(pid_t pid) {
  UniqueFd fd = try_open_pidfd(pid);
  if (!fd) return errno_error("pidfd_open", errno);
  return fd;
}

Outcome send_signal(int pidfd, int signal) {
  if (!try_send_signal(pidfd, signal)) return errno_error("pidfd_send_signal", errno);
  return {};
}

Result<std::optional<ProcessEnd>> reap(int pidfd) {
  siginfo_t info = {};
  int failed = 0;
  do {
    failed = ::waitid(kByPidfd, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG);
  } while (failed != 0 && errno == EINTR);
  if (failed != 0) return errno_error("waitid", errno);
  if (info.si_pid == 0) return std::optional<ProcessEnd>();
  if (info.si_code == CLD_EXITED) return std::optional(ProcessEnd{info.si_status, 0});
  return std::optional(ProcessEnd{128 + info.si_status, info.si_status});
}

}  // namespace spillway::host
