#include "host/spawn/entry_child.h"

#include "base/check.h"
#include "host/kernel/kernel_file.h"
#include "host/spawn/process_spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

namespace spillway::host {
namespace {

struct EntryMakings {
  std::vector<std::string> candidates;
  std::vector<char*> argv;
  std::vector<char*> environment;
  const EntryPlan* of = nullptr;
  CgroupJoin cgroup;
  std::array<UniqueFd, 3> streams;
  bool terminal = false;
  std::string oom_score;
  std::optional<rlimit> open_files;
  sock_fprog calls = {};
  UniqueFd status;
  pid_t* program = nullptr;  // see ProgramNumber
};

/// The second child: in the container's pid namespace, with no rights but the container's.
[[noreturn]] void become_program(const EntryMakings& plan) {
  if (::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) fail_child(kStatusFd, ChildStep::kSession, errno);
  if (::syscall(SYS_setsid) < 0) fail_child(kStatusFd, ChildStep::kSession, errno);
  if (plan.terminal && ::syscall(SYS_ioctl, 0, TIOCSCTTY, 0) != 0) fail_child(kStatusFd, ChildStep::kSession, errno);
  reset_signals();
  if (plan.calls.len > 0 && ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &plan.calls) != 0)
    fail_child(kStatusFd, ChildStep::kCallFilter, errno);
  run_program(plan.candidates, plan.argv.data(), plan.environment.data());
}

[[noreturn]] void enter_container(const EntryMakings& plan) {
  const EntryPlan& entry = *plan.of;
  const int status = plan.status.get();
  seal_memory(status);
  plan.cgroup.finish(status);
  const long oom = ::syscall(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY);
  if (oom < 0) fail_child(status, ChildStep::kOomScore, errno);
  if (!write_whole(static_cast<int>(oom), plan.oom_score.data(), plan.oom_score.size()) && errno != EACCES)
    fail_child(status, ChildStep::kOomScore, errno);
  for (const UniqueFd& space : entry.namespaces)
    if (::syscall(SYS_setns, space.get(), 0) != 0) fail_child(status, ChildStep::kNamespace, errno);
  if (entry.confinement != nullptr) {
    ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr, 0, 0, 0);  // not ours; a kernel without keys has none
    drop_rights(*entry.confinement, entry.users, status);
    seal_memory(status);
  }
  if (::syscall(SYS_chdir, entry.working_dir.c_str()) != 0) fail_child(status, ChildStep::kWorkingDir, errno);
  ::syscall(SYS_umask, 022);
  if (plan.open_files && ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &*plan.open_files, nullptr) != 0)
    fail_child(status, ChildStep::kLimits, errno);
  for (int fd = 0; fd < 3; ++fd)
    if (::syscall(SYS_dup3, plan.streams[static_cast<std::size_t>(fd)].get(), fd, 0) < 0)
      fail_child(status, ChildStep::kDescriptors, errno);
  if (::syscall(SYS_dup3, status, kStatusFd, O_CLOEXEC) < 0 || ::syscall(SYS_close_range, kStatusFd + 1, ~0U, 0) != 0)
    fail_child(status, ChildStep::kDescriptors, errno);
  // The page is written to once before, because the kernel cannot bring in a page for a process that is being killed.
  *static_cast<volatile pid_t*>(plan.program) = 0;
  const long pid =
      ::syscall(SYS_clone, CLONE_PARENT | CLONE_PARENT_SETTID | SIGCHLD, nullptr, plan.program, nullptr, nullptr);
  if (pid < 0) fail_child(kStatusFd, ChildStep::kSession, errno);
  if (pid == 0) become_program(plan);
  // reported now, because the parent can watch the process from here on
  const ChildReport report{ChildStep::kCloned, 0};
  ::syscall(SYS_write, kStatusFd, &report, sizeof report);
  for (;;) ::syscall(SYS_exit_group, 0);
}

Result<EntryMakings> prepare_entry(const EntryPlan& entry, const EntryStreams& streams) {
  SPILLWAY_CHECK(entry.confinement == nullptr || entry.users >= 0);
  EntryMakings plan;
  plan.of = &entry;
  plan.candidates = program_candidates(entry.argv, entry.environment);
  plan.argv = c_strings(entry.argv);
  plan.environment = c_strings(entry.environment);
  plan.terminal = streams.terminal;
  plan.oom_score = fmt::format("{}", entry.oom_score_adj);
  if (entry.confinement != nullptr) {
    plan.calls.len = static_cast<unsigned short>(entry.confinement->calls.size());
    plan.calls.filter = const_cast<sock_filter*>(entry.confinement->calls.data());
  }
  rlimit files = {};
  if (entry.open_files_max && ::getrlimit(RLIMIT_NOFILE, &files) == 0)
    plan.open_files = rlimit{std::min<rlim_t>(*entry.open_files_max, files.rlim_max), files.rlim_max};
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return errno_error("/dev/null", errno);
  const std::array<int, 3> wanted = {streams.in, streams.out, streams.err};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    SPILLWAY_TRY(high, raised(wanted[i] >= 0 ? wanted[i] : null.get()));
    plan.streams[i] = std::move(high);
  }
  return plan;
}

std::string describe(const EntryPlan& plan, const ChildReport& report) {
  const std::string why = errno_error("", report.error).message;
  using enum ChildStep;
  if (report.step == kExec) return exec_failure(plan.argv[0], report.error);
  if (report.step == kWorkingDir) return fmt::format("working directory \"{}\": {}", plan.working_dir, why);
  if (report.step == kCgroup) return fmt::format("cannot join the container's cgroup: {}", why);
  if (report.step == kNamespace || report.step == kUsers)
    return fmt::format("cannot enter the container's namespaces: {}", why);
  return fmt::format("cannot become a process of the container (step {}): {}", static_cast<int>(report.step), why);
}

}  // namespace

ProgramNumber::~ProgramNumber() {
  if (page_ != nullptr) ::munmap(page_, sizeof(pid_t));
}

ProgramNumber::ProgramNumber(ProgramNumber&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}

ProgramNumber& ProgramNumber::operator=(ProgramNumber&& other) noexcept {
  std::swap(page_, other.page_);
  return *this;
}

Result<ProgramNumber> ProgramNumber::create() {
  void* const page = ::mmap(nullptr, sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return errno_error("mmap", errno);
  ProgramNumber made;
  made.page_ = static_cast<pid_t*>(page);
  return made;
}

pid_t ProgramNumber::read() const {
  return page_ == nullptr ? 0 : std::atomic_ref(*page_).load();
}

Result<EntryChild> start_entry(const EntryPlan& entry, const EntryStreams& streams) {
  SPILLWAY_TRY(plan, prepare_entry(entry, streams));
  SPILLWAY_TRY(program, ProgramNumber::create());
  plan.program = program.address();
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return errno_error("pipe", errno);
  UniqueFd status(ends[0]);
  const UniqueFd status_end(ends[1]);
  SPILLWAY_TRY(high, raised(status_end.get()));
  plan.status = std::move(high);
  SPILLWAY_TRY(cgroup, CgroupJoin::prepare(entry.cgroup));
  plan.cgroup = std::move(cgroup);
  // A signal handler of ours must not run in the child.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const CgroupJoin::Cloned cloned = plan.cgroup.clone(0);
  if (cloned.pid == 0) enter_container(plan);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (cloned.pid < 0) return errno_error("clone", error);
  return EntryChild{UniqueFd(cloned.pidfd), std::move(status), std::move(program)};
}

void read_entry_reports(const EntryPlan& plan, const EntryChild& child, EntryReports& reports) {
  while (!reports.at_end) {
    ChildReport report = {};
    const ssize_t got = ::read(child.status.get(), &report, sizeof report);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    reports.at_end = got != static_cast<ssize_t>(sizeof report);
    if (!reports.at_end && report.step != ChildStep::kCloned) reports.failure = describe(plan, report);
  }
  reports.program = child.program.read();
}

}  // namespace spillway::host
