#include "host/spawn/process_spawn.h"

#include "base/check.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/pidfd.h"
#include "host/supervisor/supervisor_state.h"

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

constexpr rlim_t kOpenFilesWanted = 65'536;

using Step = ChildStep;
using Report = ChildReport;

constexpr Step kIsolatingSteps[] = {Step::kNamespace, Step::kLoopback, Step::kSysctl, Step::kView,      Step::kMounts,
                                    Step::kUsers,     Step::kIdentity, Step::kRights, Step::kCallFilter};

/// Everything the child needs, made before the clone: between clone and exec it may only make system calls.
struct ChildPlan {
  std::vector<std::string> candidates;
  std::vector<char*> argv;
  std::vector<char*> environment;
  CgroupJoin cgroup;
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
  UniqueFd in;
  int owned_in = -1;  // `in`, if it must belong to the program's user; -1 otherwise
  bool terminal = false;
  UniqueFd out;
  UniqueFd err;
  UniqueFd status;
};

// The child.

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
    if (::syscall(SYS_setns, space, 0) != 0) fail_child(status, Step::kNamespace, errno);
  if (plan.raises_loopback && !raise_loopback()) fail_child(status, Step::kLoopback, errno);
  for (std::size_t i = 0; i < plan.sysctls.size(); ++i) {
    const auto& [file, value] = plan.sysctls[i];
    const long fd = ::syscall(SYS_openat, AT_FDCWD, file.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || !write_whole(static_cast<int>(fd), value.data(), value.size()))
      fail_child(status, Step::kSysctl, errno, i);
    ::syscall(SYS_close, fd);
  }
}

/// The pod's mounts, then its own, and no cgroup seen but its own. Still root.
void enter_view(const ChildPlan& plan, int status) {
  const Confinement& own = *plan.confinement;
  if (::syscall(SYS_setns, plan.mounts, CLONE_NEWNS) != 0 || ::syscall(SYS_unshare, CLONE_NEWNS | CLONE_NEWCGROUP) != 0)
    fail_child(status, Step::kView, errno);
  if (const auto broken = run_mount_steps(own.mounts)) fail_child(status, Step::kMounts, broken->error, broken->step);
  // A program may open its output again by its name, /dev/stdout.
  for (const int fd : {plan.out.get(), plan.err.get(), plan.owned_in})
    if (fd >= 0 && ::syscall(SYS_fchown, fd, own.first_id + own.uid, own.first_id + own.gid) != 0)
      fail_child(status, Step::kDescriptors, errno);
  ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr, 0, 0, 0);  // not ours; a kernel without keys has none
}

[[noreturn]] void run_child(const ChildPlan& plan) {
  const int status = plan.status.get();
  // With a target, processes of the container can see this process before its program runs.
  if (plan.confinement != nullptr) seal_memory(status);
  plan.cgroup.finish(status);
  isolate(plan, status);
  if (::syscall(SYS_setsid) < 0) fail_child(status, Step::kSession, errno);
  const long oom = ::syscall(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY);
  if (oom < 0) fail_child(status, Step::kOomScore, errno);
  // Lowering it takes a capability that an unprivileged agent has not: it then runs with what it inherited.
  if (!write_whole(static_cast<int>(oom), plan.oom_score.data(), plan.oom_score.size()) && errno != EACCES)
    fail_child(status, Step::kOomScore, errno);
  if (plan.confinement != nullptr) {
    enter_view(plan, status);
    drop_rights(*plan.confinement, plan.users, status);
    seal_memory(status);
  }
  if (::syscall(SYS_chdir, plan.working_dir) != 0) fail_child(status, Step::kWorkingDir, errno);
  ::syscall(SYS_umask, 022);
  if (plan.open_files && ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &*plan.open_files, nullptr) != 0)
    fail_child(status, Step::kLimits, errno);
  if (::syscall(SYS_dup3, plan.in.get(), 0, 0) < 0 || ::syscall(SYS_dup3, plan.out.get(), 1, 0) < 0 ||
      ::syscall(SYS_dup3, plan.err.get(), 2, 0) < 0 || ::syscall(SYS_dup3, status, kStatusFd, O_CLOEXEC) < 0 ||
      ::syscall(SYS_close_range, kStatusFd + 1, ~0U, 0) != 0)
    fail_child(status, Step::kDescriptors, errno);
  if (plan.terminal && ::syscall(SYS_ioctl, 0, TIOCSCTTY, 0) != 0) fail_child(kStatusFd, Step::kSession, errno);
  reset_signals();
  if (plan.calls.len > 0 && ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &plan.calls) != 0)
    fail_child(kStatusFd, Step::kCallFilter, errno);
  run_program(plan.candidates, plan.argv.data(), plan.environment.data());
}

/// Descriptors and cgroup that a supervisor is started with.
struct SupervisorMakings {
  CgroupJoin cgroup;
  std::vector<std::pair<UniqueFd, int>> descriptors;  // out of the way, and where they belong
  UniqueFd program;
  int state = -1;
  UniqueFd made;  // receives the program's process
};

/// The program's process is made first, so that it is not delayed.
[[noreturn]] void become_supervisor(ChildPlan& child, const SupervisorMakings& own, unsigned long namespaces) {
  const int made = own.made.get();
  const CgroupJoin::Cloned program = child.cgroup.clone(namespaces);
  if (program.pid == 0) run_child(child);
  if (program.pid < 0) fail_child(made, Step::kCloned, errno);
  const auto number = static_cast<std::int32_t>(program.pid);
  ::syscall(SYS_pwrite64, own.state, &number, sizeof number, offsetof(SupervisorState, process));
  const Report report{Step::kCloned, 0, static_cast<std::size_t>(program.pid)};
  ::syscall(SYS_write, made, &report, sizeof report);
  own.cgroup.finish(made);
  ::syscall(SYS_setsid);  // not yet the leader of a session
  if (::syscall(SYS_dup3, program.pidfd, kProcessFd, 0) < 0) fail_child(made, Step::kDescriptors, errno);
  for (const auto& [ours, number_there] : own.descriptors)
    if (::syscall(SYS_dup3, ours.get(), number_there, 0) < 0) fail_child(made, Step::kDescriptors, errno);
  const long null = ::syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd)
    if (::syscall(SYS_dup3, null, fd, 0) < 0 && errno != EINVAL) fail_child(made, Step::kDescriptors, errno);
  if (::syscall(SYS_dup3, own.program.get(), kSupervisorFds, O_CLOEXEC) < 0)
    fail_child(made, Step::kDescriptors, errno);
  for (int fd = kStateFd; fd < kSupervisorFds; ++fd) {
    bool given = fd == kProcessFd;
    for (const auto& [ours, number_there] : own.descriptors) given = given || number_there == fd;
    if (!given) ::syscall(SYS_close, fd);
  }
  ::syscall(SYS_close_range, kSupervisorFds + 1, ~0U, 0);
  char name[] = "spillway-supervisor";
  char* const argv[] = {name, nullptr};
  char* const environment[] = {nullptr};
  ::syscall(SYS_execveat, kSupervisorFds, "", argv, environment, AT_EMPTY_PATH);
  for (;;) ::syscall(SYS_exit_group, 127);
}

std::string_view path_of(std::span<const std::string> environment) {
  for (const std::string& entry : environment)
    if (entry.starts_with("PATH=")) return std::string_view(entry).substr(5);
  return {};
}

Result<ChildPlan> prepare(const SpawnPlan& plan) {
  ChildPlan child;
  child.candidates = program_candidates(plan.argv, plan.environment);
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
  SPILLWAY_TRY(in, raised(plan.stdin_fd >= 0 ? plan.stdin_fd : null.get()));
  SPILLWAY_TRY(out, raised(plan.stdout_fd));
  SPILLWAY_TRY(err, raised(plan.stderr_fd));
  child.in = std::move(in);
  if (plan.stdin_fd >= 0) child.owned_in = child.in.get();
  child.terminal = plan.terminal;
  child.out = std::move(out);
  child.err = std::move(err);
  return child;
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
    case Step::kCloned:
      break;
  }
  std::string failure = exec_failure(plan.argv[0], report.error);
  // Only the path decides: the pod must not find out whether the machine has such a file.
  if (report.error == ENOENT && plan.confinement && plan.argv[0].starts_with("/tmp/"))
    failure += " (/tmp of a pod is its own directory, not /tmp of this machine)";
  return failure;
}

/// A copy of the descriptor above all numbers that are assigned later.
Result<UniqueFd> raised_beyond(int fd, int first) {
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, first));
  if (!copy) return errno_error("dup", errno);
  return copy;
}

Result<SupervisorMakings> prepare_supervisor(const SpawnPlan& plan, int made) {
  SupervisorMakings own;
  SPILLWAY_TRY(cgroup, CgroupJoin::prepare(plan.supervisor->cgroup));
  own.cgroup = std::move(cgroup);
  own.state = plan.supervisor->state;
  for (const auto& [ours, number] : plan.supervisor->descriptors) {
    if (ours < 0) continue;
    SPILLWAY_TRY(copy, raised_beyond(ours, kSupervisorFds + 1));
    own.descriptors.emplace_back(std::move(copy), number);
  }
  SPILLWAY_TRY(program, raised_beyond(plan.supervisor->program, kSupervisorFds + 1));
  own.program = std::move(program);
  SPILLWAY_TRY(made_end, raised_beyond(made, kSupervisorFds + 1));
  own.made = std::move(made_end);
  return own;
}

/// Starts the supervisor, which starts the program's process.
Result<SpawnedProcess> spawn_supervised(const SpawnPlan& plan, ChildPlan& child, UniqueFd status,
                                        unsigned long namespaces) {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("pipe", errno);
  const UniqueFd made(ends[0]);
  UniqueFd made_end(ends[1]);
  SPILLWAY_TRY(own, prepare_supervisor(plan, made_end.get()));
  made_end.reset();
  const bool shares_pids = plan.confinement && plan.shared_pids >= 0;
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const CgroupJoin::Cloned cloned = own.cgroup.clone(0);
  if (cloned.pid == 0) {
    // Only children of this process are in that namespace, not the process itself.
    if (shares_pids && ::syscall(SYS_setns, plan.shared_pids, CLONE_NEWPID) != 0)
      fail_child(own.made.get(), Step::kNamespace, errno);
    become_supervisor(child, own, namespaces);
  }
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (cloned.pid < 0) return errno_error("clone", error);
  UniqueFd supervisor(cloned.pidfd);
  own.made.reset();
  Report report = {};
  ssize_t got = 0;
  do {
    got = ::read(made.get(), &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  const auto pid = static_cast<pid_t>(report.index);
  Result<UniqueFd> pidfd = UniqueFd();
  if (got != static_cast<ssize_t>(sizeof report))
    pidfd = make_error(ErrorCode::kInternalError, "a supervisor was killed");
  else if (report.step == Step::kNamespace)
    pidfd = errno_error("processes of the target container", report.error);
  else if (report.error != 0)
    pidfd = errno_error("clone", report.error);
  else
    pidfd = open_pidfd(pid);
  if (!pidfd) {
    ignored(send_signal(supervisor.get(), SIGKILL), "it has ended");
    pollfd waited{supervisor.get(), POLLIN, 0};
    while (::poll(&waited, 1, -1) < 0 && errno == EINTR) {
    }
    ignored(reap(supervisor.get()), "it is gone");
    return pidfd.error();
  }
  return SpawnedProcess{pid, *std::move(pidfd), std::move(status), static_cast<pid_t>(cloned.pid),
                        std::move(supervisor)};
}

}  // namespace

std::vector<std::string> program_candidates(std::span<const std::string> argv,
                                            std::span<const std::string> environment) {
  SPILLWAY_CHECK(!argv.empty());
  const std::string& program = argv[0];
  if (program.empty() || program.contains('/')) return {program};
  std::vector<std::string> candidates;
  std::string_view path = path_of(environment);
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

  SPILLWAY_TRY(cgroup, CgroupJoin::prepare(plan.cgroup));
  child.cgroup = std::move(cgroup);
  const bool shares_pids = plan.confinement && plan.shared_pids >= 0;
  const unsigned long namespaces = plan.confinement && plan.confinement->own_pids && !shares_pids ? CLONE_NEWPID : 0;
  if (plan.supervisor) return spawn_supervised(plan, child, std::move(status), namespaces);
  UniqueFd own_pids;
  if (plan.shared_pids >= 0) {
    own_pids.reset(::open("/proc/thread-self/ns/pid_for_children", O_RDONLY | O_CLOEXEC));
    if (!own_pids) return errno_error("/proc/thread-self/ns/pid_for_children", errno);
  }
  // A signal handler of ours must not run in the child.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  // Only children that this thread makes before it returns are in that namespace.
  const bool entered = !shares_pids || ::setns(plan.shared_pids, CLONE_NEWPID) == 0;
  int error = errno;
  CgroupJoin::Cloned cloned;
  if (entered) {
    cloned = child.cgroup.clone(namespaces);
    if (cloned.pid == 0) run_child(child);
    error = errno;
    if (shares_pids) SPILLWAY_CHECK(::setns(own_pids.get(), CLONE_NEWPID) == 0);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (cloned.pid < 0 && shares_pids) return errno_error("processes of the target container", error);
  if (cloned.pid < 0) return errno_error("clone", error);
  return SpawnedProcess{static_cast<pid_t>(cloned.pid), UniqueFd(cloned.pidfd), std::move(status), 0, UniqueFd()};
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
