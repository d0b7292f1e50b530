#include "host/kernel/namespace_child.h"

#include "host/kernel/kernel_file.h"
#include "host/kernel/pidfd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace spillway::host {
namespace {

struct ChildReport {
  bool worked;
  NamespaceChild::Failure failure;
};

[[noreturn]] void work_and_wait(const NamespaceChild::Work& work, int report_fd) {
  ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  ChildReport report = {};
  report.worked = work(report.failure);
  ::syscall(SYS_write, report_fd, &report, sizeof report);
  for (;;) ::syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
}

}  // namespace

Result<NamespaceChild> NamespaceChild::start(std::uint64_t clone_flags, const Work& work,
                                             const std::function<Error(const Failure&)>& describe) {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("pipe", errno);
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  clone_args args = {};
  int pidfd = -1;
  args.flags = CLONE_PIDFD | clone_flags;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return errno_error({}, errno);
  if (pid == 0) work_and_wait(work, theirs.get());
  NamespaceChild child(pid, UniqueFd(pidfd));
  theirs.reset();
  ChildReport report = {};
  ssize_t got = 0;
  do {
    got = ::read(ours.get(), &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof report)) return make_error(ErrorCode::kInternalError, "a process was killed");
  if (!report.worked) return describe(report.failure);
  return child;
}

NamespaceChild::~NamespaceChild() {
  if (!pidfd_) return;
  static_cast<void>(try_send_signal(pidfd_.get(), SIGKILL));
  siginfo_t ended = {};
  while (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd_.get()), &ended, WEXITED | __WALL) != 0 &&
         errno == EINTR) {
  }
}

Result<UniqueFd> NamespaceChild::open(const char* name) const {
  const std::string path = fmt::format("/proc/{}/ns/{}", pid_, name);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(path, errno);
  return fd;
}

Result<UniqueFd> NamespaceChild::root() const {
  const std::string path = fmt::format("/proc/{}/root", pid_);
  UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return errno_error(path, errno);
  return fd;
}

Outcome NamespaceChild::map_ids(std::uint32_t first, std::uint32_t count) const {
  const std::string map = fmt::format("0 {} {}\n", first, count);
  for (const char* file : {"uid_map", "gid_map"})
    SPILLWAY_TRY_VOID(write_file_at(AT_FDCWD, fmt::format("/proc/{}/{}", pid_, file), map));
  return {};
}

}  // namespace spillway::host
