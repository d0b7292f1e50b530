#include "host/process/process_spawn.h"

#include "base/check.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/pidfd.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace spillway::host {
namespace {

constexpr int kFirstFreeFd = 10;  // what the child moves to 0..3 must not lie there already
constexpr int kStatusFd = 3;
constexpr std::uint64_t kCloneIntoCgroup = 0x200000000ULL;
constexpr rlim_t kOpenFilesWanted = 65'536;

enum class Step : int {
  kCgroup,
  kNamespace,
  kLoopback,
  kSysctl,
  kSession,
  kOomScore,
  kWorkingDir,
  kLimits,
  kDescriptors,
  kView,
  kMounts,
  kUsers,
  kIdentity,
  kRights,
  kCallFilter,
  kExec
};

constexpr Step kIsolatingSteps[] = {Step::kNamespace, Step::kLoopback, Step::kSysctl, Step::kView,      Step::kMounts,
                                    Step::kUsers,     Step::kIdentity, Step::kRights, Step::kCallFilter};

struct Report {
  Step step;
  int error;
  std::size_t index = 0;  // of the sysctl, of the mount
};

/// Everything the child needs, made before the clone: between clone and exec it may only make system calls.
struct ChildPlan {
  std::vector<std::string> candidates;
  std::vector<char*> argv;
  std::vector<char*> environment;
  std::vector<UniqueFd> procs;  // cgroup.procs of each hierarchy still to be joined
  std::vector<int> namespaces;  // descriptors to enter
  bool raises_loopback = false;
  std::vector<std::pair<std::string, std::string>> sysctls;  // file and value
  const Confinement* confinement = nullptr;
  int mounts = -1;  // the pod's mount and user namespaces
  int users = -1;
  sock_fprog calls = {};
  const char* working_dir = "/";
  std::string oom_score;
  std::optional<rlimit> open_files;
  UniqueFd null;
  UniqueFd out;
  UniqueFd err;
  UniqueFd status;
};

std::vector<char*> c_strings(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Result<UniqueFd> raised(int fd) {
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeFd));
  if (!copy) return errno_error("dup", errno);
  return copy;
}

// The child. Raw system calls only: it shares nothing but a copy of this process's memory, in which other threads may
// have held any lock.

[[noreturn]] void fail(int status_fd, Step step, int error, std::size_t index = 0) {
  const Report report{step, error, index};
  ::syscall(SYS_write, status_fd, &report, sizeof report);
  for (;;) ::syscall(SYS_exit_group, 127);
}

bool write_all(int fd, const char* text, std::size_t size) {
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

/// A network namespace is born with its loopback device down.
bool raise_loopback() {
  const long socket = ::syscall(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  ifreq request = {};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  if (::syscall(SYS_ioctl, socket, SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return ::syscall(SYS_ioctl, socket, SIOCSIFFLAGS, &request) == 0;
}

void isolate(const ChildPlan& plan, int status) {
  for (const int space : plan.namespaces)
    if (::syscall(SYS_setns, space, 0) != 0) fail(status, Step::kNamespace, errno);
  if (plan.raises_loopback && !raise_loopback()) fail(status, Step::kLoopback, errno);
  for (std::size_t i = 0; i < plan.sysctls.size(); ++i) {
    const auto& [file, value] = plan.sysctls[i];
    const long fd = ::syscall(SYS_openat, AT_FDCWD, file.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || !write_all(static_cast<int>(fd), value.data(), value.size())) fail(status, Step::kSysctl, errno, i);
    ::syscall(SYS_close, fd);
  }
}

/// The pod's mounts, then its own, and no cgroup seen but its own. Still root.
void enter_view(const ChildPlan& plan, int status) {
  const Confinement& own = *plan.confinement;
  if (::syscall(SYS_setns, plan.mounts, CLONE_NEWNS) != 0 || ::syscall(SYS_unshare, CLONE_NEWNS | CLONE_NEWCGROUP) != 0)
    fail(status, Step::kView, errno);
  if (const auto broken = run_mount_steps(own.mounts)) fail(status, Step::kMounts, broken->error, broken->step);
  // A program may open its output again, as /dev/stdout.
  for (const int fd : {plan.out.get(), plan.err.get()})
    if (::syscall(SYS_fchown, fd, own.first_id + own.uid, own.first_id + own.gid) != 0)
      fail(status, Step::kDescriptors, errno);
  ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr, 0, 0, 0);  // not ours; a kernel without keys has none
}

/// Somebody of the pod's, with these rights and no others, for good.
void drop_rights(const ChildPlan& plan, int status) {
  const Confinement& own = *plan.confinement;
  if (::syscall(SYS_setns, plan.users, CLONE_NEWUSER) != 0) fail(status, Step::kUsers, errno);
  for (unsigned right = 0; right < 64; ++right) {
    if ((own.capabilities >> right & 1) != 0) continue;
    if (::syscall(SYS_prctl, PR_CAPBSET_DROP, right, 0, 0, 0) == 0) continue;
    if (errno != EINVAL) fail(status, Step::kRights, errno);
    break;  // the kernel knows no more
  }
  if (::syscall(SYS_setgroups, own.groups.size(), own.groups.data()) != 0 ||
      ::syscall(SYS_setresgid, own.gid, own.gid, own.gid) != 0 ||
      ::syscall(SYS_setresuid, own.uid, own.uid, own.uid) != 0)
    fail(status, Step::kIdentity, errno);
  // Without root there are none: what is left in the bounding set is what a program could have by its file.
  const std::uint64_t held = own.uid == 0 ? own.capabilities : 0;
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct sets[2] = {};
  for (int half = 0; half < 2; ++half) {
    sets[half].effective = static_cast<std::uint32_t>(held >> (32 * half));
    sets[half].permitted = sets[half].effective;
  }
  if (::syscall(SYS_capset, &header, sets) != 0 || ::syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    fail(status, Step::kRights, errno);
}

[[noreturn]] void run_child(const ChildPlan& plan) {
  const int status = plan.status.get();
  for (const UniqueFd& procs : plan.procs)
    if (!write_all(procs.get(), "0", 1)) fail(status, Step::kCgroup, errno);
  isolate(plan, status);
  if (::syscall(SYS_setsid) < 0) fail(status, Step::kSession, errno);
  const long oom = ::syscall(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY);
  if (oom < 0) fail(status, Step::kOomScore, errno);
  // Lowering it takes a capability that an unprivileged agent has not: it then runs with what it inherited.
  if (!write_all(static_cast<int>(oom), plan.oom_score.data(), plan.oom_score.size()) && errno != EACCES)
    fail(status, Step::kOomScore, errno);
  if (plan.confinement != nullptr) {
    enter_view(plan, status);
    drop_rights(plan, status);
  }
  if (::syscall(SYS_chdir, plan.working_dir) != 0) fail(status, Step::kWorkingDir, errno);
  ::syscall(SYS_umask, 022);
  if (plan.open_files && ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &*plan.open_files, nullptr) != 0)
    fail(status, Step::kLimits, errno);
  if (::syscall(SYS_dup3, plan.null.get(), 0, 0) < 0 || ::syscall(SYS_dup3, plan.out.get(), 1, 0) < 0 ||
      ::syscall(SYS_dup3, plan.err.get(), 2, 0) < 0 || ::syscall(SYS_dup3, status, kStatusFd, O_CLOEXEC) < 0 ||
      ::syscall(SYS_close_range, kStatusFd + 1, ~0U, 0) != 0)
    fail(status, Step::kDescriptors, errno);
  reset_signals();
  if (plan.calls.len > 0 && ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &plan.calls) != 0)
    fail(kStatusFd, Step::kCallFilter, errno);
  int reported = 0;  // EACCES says more than ENOENT; anything else says all
  for (const std::string& program : plan.candidates) {
    ::syscall(SYS_execve, program.c_str(), plan.argv.data(), plan.environment.data());
    const bool absent = errno == ENOENT || errno == ENOTDIR;
    if (!absent || reported == 0) reported = errno;
    if (!absent && errno != EACCES) break;
  }
  fail(kStatusFd, Step::kExec, reported == 0 ? ENOENT : reported);
}

std::string_view path_of(const SpawnPlan& plan) {
  for (const std::string& entry : plan.environment)
    if (entry.starts_with("PATH=")) return std::string_view(entry).substr(5);
  return {};
}

Result<ChildPlan> prepare(const SpawnPlan& plan) {
  ChildPlan child;
  child.candidates = program_candidates(plan);
  child.argv = c_strings(plan.argv);
  child.environment = c_strings(plan.environment);
  child.working_dir = plan.working_dir.c_str();
  if (plan.namespaces != nullptr) {
    child.namespaces = plan.namespaces->fds();
    child.raises_loopback = plan.namespaces->has_network();
  }
  if (plan.confinement) {
    SPILLWAY_CHECK(plan.namespaces != nullptr && plan.namespaces->users() >= 0);
    child.confinement = &*plan.confinement;
    child.mounts = plan.namespaces->mounts();
    child.users = plan.namespaces->users();
    child.calls.len = static_cast<unsigned short>(plan.confinement->calls.size());
    child.calls.filter = const_cast<sock_filter*>(plan.confinement->calls.data());
  }
  for (const auto& [name, value] : plan.sysctls) {
    SPILLWAY_TRY(path, sysctl_path(name));
    child.sysctls.emplace_back(std::move(path), value);
  }
  rlimit files = {};
  if (plan.open_files_max && ::getrlimit(RLIMIT_NOFILE, &files) == 0)
    child.open_files = rlimit{std::min<rlim_t>(*plan.open_files_max, files.rlim_max), files.rlim_max};
  child.oom_score = fmt::format("{}", plan.oom_score_adj);
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return errno_error("/dev/null", errno);
  SPILLWAY_TRY(raised_null, raised(null.get()));
  SPILLWAY_TRY(out, raised(plan.stdout_fd));
  SPILLWAY_TRY(err, raised(plan.stderr_fd));
  child.null = std::move(raised_null);
  child.out = std::move(out);
  child.err = std::move(err);
  return child;
}

/// Version 2 joins its cgroup by the clone itself, if the kernel can; else the child writes itself into each hierarchy.
Outcome open_procs(const CgroupDir& cgroup, ChildPlan& child) {
  for (const int directory : cgroup.fds()) {
    const UniqueFd fd(::openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC));
    if (!fd) return errno_error("cgroup.procs", errno);
    SPILLWAY_TRY(high, raised(fd.get()));
    child.procs.push_back(std::move(high));
  }
  return {};
}

struct Cloned {
  long pid;
  int pidfd;
};

Cloned clone_child(int cgroup_fd, const SpawnPlan& plan) {
  int pidfd = -1;
  const unsigned long namespaces = plan.confinement && plan.confinement->own_pids ? CLONE_NEWPID : 0;
  clone_args args = {};
  args.flags = CLONE_PIDFD | namespaces;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  if (cgroup_fd >= 0) {
    args.flags |= kCloneIntoCgroup;
    args.cgroup = static_cast<std::uint64_t>(cgroup_fd);
  }
  long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0 && errno == ENOSYS && cgroup_fd < 0)  // hidden by some sandboxes
    pid = ::syscall(SYS_clone, CLONE_PIDFD | namespaces | SIGCHLD, nullptr, &pidfd, nullptr, nullptr);
  return {pid, pidfd};
}

std::string describe(const SpawnPlan& plan, const Report& report) {
  const std::string why = errno_error("", report.error).message;
  switch (report.step) {
    case Step::kCgroup:
      return fmt::format("cannot join cgroup {}: {}", plan.cgroup->path(), why);
    case Step::kNamespace:
      return fmt::format("cannot enter the pod's namespaces: {}", why);
    case Step::kLoopback:
      return fmt::format("loopback device of the pod: {}", why);
    case Step::kSysctl: {
      const auto& [name, value] = plan.sysctls.at(report.index);
      return fmt::format("sysctl \"{}\" cannot be set to \"{}\": {}", name, value, why);
    }
    case Step::kSession:
      return fmt::format("setsid: {}", why);
    case Step::kOomScore:
      return fmt::format("oom_score_adj {}: {}", plan.oom_score_adj, why);
    case Step::kWorkingDir:
      return fmt::format("working directory \"{}\": {}", plan.working_dir, why);
    case Step::kLimits:
      return fmt::format("limit of open files: {}", why);
    case Step::kDescriptors:
      return fmt::format("descriptors: {}", why);
    case Step::kView:
      return fmt::format("cannot enter the pod's mount namespace: {}", why);
    case Step::kMounts:
      return describe(plan.confinement->mounts.at(report.index), report.error);
    case Step::kUsers:
      return fmt::format("cannot enter the pod's user namespace: {}", why);
    case Step::kIdentity:
      return fmt::format("user {}, group {}: {}", plan.confinement->uid, plan.confinement->gid, why);
    case Step::kRights:
      return fmt::format("capabilities: {}", why);
    case Step::kCallFilter:
      return fmt::format("seccomp filter: {}", why);
    case Step::kExec:
      break;
  }
  if (report.error == ENOENT && !plan.argv[0].contains('/'))
    return fmt::format("exec: \"{}\": executable file not found in $PATH", plan.argv[0]);
  return fmt::format("exec: \"{}\": {}", plan.argv[0], why);
}

}  // namespace

std::vector<std::string> program_candidates(const SpawnPlan& plan) {
  SPILLWAY_CHECK(!plan.argv.empty());
  const std::string& program = plan.argv[0];
  if (program.empty() || program.contains('/')) return {program};
  std::vector<std::string> candidates;
  std::string_view path = path_of(plan);
  while (!path.empty()) {
    const std::string_view directory = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(path.size(), directory.size() + 1));
    if (!directory.empty()) candidates.push_back(fmt::format("{}/{}", directory, program));
  }
  return candidates;
}

Result<std::string> sysctl_path(std::string_view name) {
  std::string path = "/proc/sys";
  for (std::string_view rest = name;;) {
    const std::size_t dot = rest.find('.');
    std::string part(rest.substr(0, dot));
    std::ranges::replace(part, '/', '.');
    if (part.empty() || part == "." || part == "..") return invalid("sysctls", "\"{}\" is no kernel parameter", name);
    path += "/" + part;
    if (dot == std::string_view::npos) return path;
    rest.remove_prefix(dot + 1);
  }
}

std::optional<std::uint64_t> raise_open_files() {
  static const std::optional<std::uint64_t> before = []() -> std::optional<std::uint64_t> {
    rlimit files = {};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return std::nullopt;
    const rlim_t found = files.rlim_cur;
    files.rlim_cur = std::max(found, std::min(kOpenFilesWanted, files.rlim_max));
    if (files.rlim_cur != found && ::setrlimit(RLIMIT_NOFILE, &files) != 0) return std::nullopt;
    return found;
  }();
  return before;
}

Result<SpawnedProcess> spawn(const SpawnPlan& plan) {
  SPILLWAY_TRY(child, prepare(plan));
  std::array<int, 2> status_pipe = {-1, -1};
  if (::pipe2(status_pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) return errno_error("pipe", errno);
  UniqueFd status(status_pipe[0]);
  const UniqueFd status_end(status_pipe[1]);
  SPILLWAY_TRY(high_status, raised(status_end.get()));
  child.status = std::move(high_status);

  int cgroup_fd = -1;
  if (plan.cgroup != nullptr) {
    if (plan.cgroup->version() == CgroupVersion::kV2)
      cgroup_fd = plan.cgroup->fd(Controller::kMemory);
    else
      SPILLWAY_TRY_VOID(open_procs(*plan.cgroup, child));
  }

  // A signal handler of ours must not run in the child.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Cloned cloned = clone_child(cgroup_fd, plan);
  if (cloned.pid < 0 && cgroup_fd >= 0 &&
      (errno == EINVAL || errno == E2BIG || errno == EOPNOTSUPP || errno == ENOSYS)) {
    const Outcome opened = open_procs(*plan.cgroup, child);
    if (opened) cloned = clone_child(-1, plan);
  }
  if (cloned.pid == 0) run_child(child);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (cloned.pid < 0) return errno_error("clone", error);
  return SpawnedProcess{static_cast<pid_t>(cloned.pid), UniqueFd(cloned.pidfd), std::move(status)};
}

Outcome try_out(SpawnPlan plan) {
  // A pipe, as every container has: what it is given for output becomes the pod's, which no file of the machine may.
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("pipe2", errno);
  const UniqueFd unread(ends[0]);
  const UniqueFd output(ends[1]);
  plan.stdout_fd = output.get();
  plan.stderr_fd = output.get();
  SPILLWAY_TRY(process, spawn(plan));
  pollfd waited{process.pidfd.get(), POLLIN, 0};
  while (::poll(&waited, 1, -1) < 0 && errno == EINTR) {
  }
  ignored(reap(process.pidfd.get()), "it is gone");
  Report report = {};
  const ssize_t got = ::read(process.status.get(), &report, sizeof report);
  if (got != static_cast<ssize_t>(sizeof report)) return make_error(ErrorCode::kInternalError, "a process was killed");
  if (report.step == Step::kExec) return {};
  return make_error(errno_error({}, report.error).code, "{}", describe(plan, report));
}

std::optional<StartReport> read_start_report(const SpawnPlan& plan, int status_fd) {
  Report report = {};
  ssize_t got = 0;
  do {
    got = ::read(status_fd, &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return std::nullopt;
  if (got == static_cast<ssize_t>(sizeof report)) {
    const bool isolating = std::ranges::find(kIsolatingSteps, report.step) != std::ranges::end(kIsolatingSteps);
    return StartReport{describe(plan, report), isolating ? "CreateContainerError" : "RunContainerError"};
  }
  return StartReport{};
}

}  // namespace spillway::host
