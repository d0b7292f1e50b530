#include "host/spawn/process_child.h"

#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace spillway::host {
namespace {

constexpr int kFirstFreeFd = 10;  // the sources of the child's descriptors 0..3 must be at least this
constexpr std::uint64_t kCloneIntoCgroup = 0x200000000ULL;

CgroupJoin::Cloned clone_with(int cgroup_fd, unsigned long flags) {
  CgroupJoin::Cloned made;
  clone_args args = {};
  args.flags = CLONE_PIDFD | flags;
  args.pidfd = reinterpret_cast<std::uint64_t>(&made.pidfd);
  args.exit_signal = SIGCHLD;
  if (cgroup_fd >= 0) {
    args.flags |= kCloneIntoCgroup;
    args.cgroup = static_cast<std::uint64_t>(cgroup_fd);
  }
  made.pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (made.pid < 0 && errno == ENOSYS && cgroup_fd < 0)  // hidden by some sandboxes
    made.pid = ::syscall(SYS_clone, CLONE_PIDFD | flags | SIGCHLD, nullptr, &made.pidfd, nullptr, nullptr);
  return made;
}

}  // namespace

Result<CgroupJoin> CgroupJoin::prepare(const CgroupDir* cgroup) {
  CgroupJoin join;
  join.cgroup_ = cgroup;
  if (cgroup != nullptr && cgroup->version() != CgroupVersion::kV2) SPILLWAY_TRY_VOID(join.open_procs());
  return join;
}

Outcome CgroupJoin::open_procs() {
  for (const int directory : cgroup_->fds()) {
    const UniqueFd fd(::openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC));
    if (!fd) return errno_error("cgroup.procs", errno);
    SPILLWAY_TRY(high, raised(fd.get()));
    procs_.push_back(std::move(high));
  }
  return {};
}

CgroupJoin::Cloned CgroupJoin::clone(unsigned long flags) {
  if (cgroup_ == nullptr || !procs_.empty()) return clone_with(-1, flags);
  const Cloned made = clone_with(cgroup_->fd(Controller::kMemory), flags);
  if (made.pid >= 0 || (errno != EINVAL && errno != E2BIG && errno != EOPNOTSUPP && errno != ENOSYS)) return made;
  return open_procs() ? clone_with(-1, flags) : made;
}

void CgroupJoin::finish(int status_fd) const {
  for (const UniqueFd& procs : procs_)
    if (!write_whole(procs.get(), "0", 1)) fail_child(status_fd, ChildStep::kCgroup, errno);
}

Result<UniqueFd> raised(int fd) {
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeFd));
  if (!copy) return errno_error("dup", errno);
  return copy;
}

std::vector<char*> c_strings(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void fail_child(int status_fd, ChildStep step, int error, std::size_t index) {
  const ChildReport report{step, error, index};
  ::syscall(SYS_write, status_fd, &report, sizeof report);
  for (;;) ::syscall(SYS_exit_group, 127);
}

bool write_whole(int fd, const char* text, std::size_t size) {
  return ::syscall(SYS_write, fd, text, size) == static_cast<long>(size);
}

void reset_signals() {
  struct KernelSigaction {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    std::uint64_t mask;
  };

  KernelSigaction action = {};
  for (int signal = 1; signal < 65; ++signal)
    ::syscall(SYS_rt_sigaction, signal, &action, nullptr, sizeof(std::uint64_t));
  const std::uint64_t none = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
}

void seal_memory(int status) {
  if (::syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) fail_child(status, ChildStep::kRights, errno);
}

void drop_rights(const Confinement& own, int users, int status) {
  if (::syscall(SYS_setns, users, CLONE_NEWUSER) != 0) fail_child(status, ChildStep::kUsers, errno);
  for (unsigned right = 0; right < 64; ++right) {
    if ((own.capabilities >> right & 1) != 0) continue;
    if (::syscall(SYS_prctl, PR_CAPBSET_DROP, right, 0, 0, 0) == 0) continue;
    if (errno != EINVAL) fail_child(status, ChildStep::kRights, errno);
    break;  // EINVAL: this and higher numbers are not capabilities of the kernel
  }
  if (::syscall(SYS_setgroups, own.groups.size(), own.groups.data()) != 0 ||
      ::syscall(SYS_setresgid, own.gid, own.gid, own.gid) != 0 ||
      ::syscall(SYS_setresuid, own.uid, own.uid, own.uid) != 0)
    fail_child(status, ChildStep::kIdentity, errno);
  // Without root a program has none: the bounding set holds only those that a program file could give it.
  const std::uint64_t held = own.uid == 0 ? own.capabilities : 0;
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct sets[2] = {};
  for (int half = 0; half < 2; ++half) {
    sets[half].effective = static_cast<std::uint32_t>(held >> (32 * half));
    sets[half].permitted = sets[half].effective;
  }
  if (::syscall(SYS_capset, &header, sets) != 0 || ::syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    fail_child(status, ChildStep::kRights, errno);
}

void run_program(const std::vector<std::string>& candidates, char* const* argv, char* const* environment) {
  int reported = 0;  // EACCES is reported rather than ENOENT; any other error at once
  for (const std::string& program : candidates) {
    ::syscall(SYS_execve, program.c_str(), argv, environment);
    const bool absent = errno == ENOENT || errno == ENOTDIR;
    if (!absent || reported == 0) reported = errno;
    if (!absent && errno != EACCES) break;
  }
  fail_child(kStatusFd, ChildStep::kExec, reported == 0 ? ENOENT : reported);
}

std::string exec_failure(const std::string& program, int error) {
  if (error == ENOENT && !program.contains('/'))
    return fmt::format("exec: \"{}\": executable file not found in $PATH", program);
  return fmt::format("exec: \"{}\": {}", program, errno_error("", error).message);
}

}  // namespace spillway::host
