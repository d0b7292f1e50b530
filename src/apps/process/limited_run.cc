#include "apps/process/limited_run.h"

#include "base/file.h"
#include "host/kernel/pidfd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace spillway::apps {
namespace {

constexpr std::size_t kComplaintBytesMax = 4096;
constexpr rlim_t kDescriptorsMax = 256;
constexpr int kPartsAtOnce = 16;  // parts read in one turn; then the loop handles other events
constexpr int kNiceness = 10;
constexpr std::size_t kStackBytes = std::size_t{64} * 1024;  // stack of the child before exec

void limit_to(__rlimit_resource what, rlim_t most) {
  const rlimit limit{most, most};
  if (setrlimit(what, &limit) != 0) _exit(127);
}

struct ChildPlan {
  std::vector<char*> argv;
  int output;
  int complaint;
  std::vector<int> texts;
  rlim_t memory_bytes;
  rlim_t processor_seconds;
  pid_t parent;
};

/// The kernel kills the child first when memory runs out, whatever protects its parent.
void offer_to_kernel() {
  constexpr std::string_view kFirst = "1000";
  const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0 || ::write(score, kFirst.data(), kFirst.size()) < 0) return;
  close(score);
}

/// Runs in the child, which uses the memory of its parent until it is another program: system calls only, and no signal
/// handler.
int become_limited(void* given) {
  const ChildPlan& plan = *static_cast<const ChildPlan*>(given);
  struct sigaction usual{};
  usual.sa_handler = SIG_DFL;
  for (int each = 1; each < NSIG; ++each) sigaction(each, &usual, nullptr);
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) _exit(127);
  offer_to_kernel();
  const int input = open("/dev/null", O_RDONLY);
  dup2(input, STDIN_FILENO);
  dup2(plan.output, STDOUT_FILENO);
  dup2(plan.complaint, STDERR_FILENO);
  for (const int each : plan.texts) fcntl(each, F_SETFD, 0);
  limit_to(RLIMIT_AS, plan.memory_bytes);
  limit_to(RLIMIT_CPU, plan.processor_seconds);
  limit_to(RLIMIT_FSIZE, 0);
  limit_to(RLIMIT_CORE, 0);
  limit_to(RLIMIT_NOFILE, kDescriptorsMax);
  setpriority(PRIO_PROCESS, 0, kNiceness);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv("/proc/self/exe", plan.argv.data());
  _exit(127);
}

/// Does the same as fork() and become_limited() without a copy of this process, whose memory may be large: its loop
/// would be blocked for that time. This thread waits until the child is another program.
pid_t start_child(ChildPlan& plan) {
  std::vector<char> stack(kStackBytes);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = clone(become_limited, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, &plan);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

struct Pipe {
  UniqueFd reads;
  UniqueFd writes;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return make_error(ErrorCode::kInternalError, "pipe: {}", std::strerror(errno));
  Pipe made{UniqueFd(ends[0]), UniqueFd(ends[1])};
  if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
    return make_error(ErrorCode::kInternalError, "pipe: {}", std::strerror(errno));
  return made;
}

/// Reads the available bytes. False: end of file.
bool read_into(int fd, std::string& text) {
  std::array<char, 65536> part{};
  for (int i = 0; i < kPartsAtOnce; ++i) {
    const ssize_t got = ::read(fd, part.data(), part.size());
    if (got > 0) {
      text.append(part.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      return false;
    } else if (errno == EAGAIN) {
      return true;
    }
  }
  return true;
}

}  // namespace

Result<HandedText> HandedText::make(const std::string& text) {
  UniqueFd fd(memfd_create("spillway-scenario", MFD_CLOEXEC));
  if (!fd) return make_error(ErrorCode::kInternalError, "memfd: {}", std::strerror(errno));
  SPILLWAY_TRY_VOID(write_all(fd.get(), text, "memfd"));
  return HandedText(std::move(fd));
}

Outcome HandedText::append(std::string_view text) const {
  return write_all(fd_.get(), text, "memfd");
}

std::string HandedText::path() const {
  return fmt::format("/proc/self/fd/{}", fd_.get());
}

LimitedRun::LimitedRun(runtime::Loop& loop, Limits limits, std::function<void(Ended)> done)
    : loop_(loop), limits_(limits), done_(std::move(done)) {}

Result<std::unique_ptr<LimitedRun>> LimitedRun::start(runtime::Loop& loop, const std::vector<std::string>& arguments,
                                                      std::vector<HandedText> texts, Limits limits,
                                                      std::function<void(Ended)> done) {
  SPILLWAY_TRY(output, make_pipe());
  SPILLWAY_TRY(complaint, make_pipe());
  std::vector<std::string> words{"spillway"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  ChildPlan plan{.argv = {},
                 .output = output.writes.get(),
                 .complaint = complaint.writes.get(),
                 .texts = {},
                 .memory_bytes = static_cast<rlim_t>(limits.memory_max.count()),
                 .processor_seconds = static_cast<rlim_t>(limits.time_max / seconds(1)) + 1,
                 .parent = getpid()};
  for (std::string& word : words) plan.argv.push_back(word.data());
  plan.argv.push_back(nullptr);
  for (const HandedText& each : texts) plan.texts.push_back(each.fd());
  const pid_t pid = start_child(plan);
  if (pid < 0) return make_error(ErrorCode::kInternalError, "cannot start a process: {}", std::strerror(errno));
  auto process = host::open_pidfd(pid);
  if (!process) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return process.error();
  }
  std::unique_ptr<LimitedRun> run(new LimitedRun(loop, limits, std::move(done)));  // NOLINT: private constructor
  run->process_ = *std::move(process);
  run->output_ = std::move(output.reads);
  run->complaint_ = std::move(complaint.reads);
  LimitedRun* const self = run.get();
  loop.watch_fd(run->output_.get(), POLLIN, [self] { self->on_output(); });
  loop.watch_fd(run->complaint_.get(), POLLIN, [self] { self->on_complaint(); });
  loop.watch_fd(run->process_.get(), POLLIN, [self] { self->on_end(); });
  run->deadline_ = loop.at(loop.now().mono + limits.time_max, [self] { self->kill(Ended::How::kOutOfTime); });
  return run;
}

LimitedRun::~LimitedRun() {
  if (!process_) return;
  host::try_send_signal(process_.get(), SIGKILL);
  pollfd gone{process_.get(), POLLIN, 0};
  while (poll(&gone, 1, 1000) < 0 && errno == EINTR) {
  }
  ignored(host::reap(process_.get()), "how it ended does not matter any more");
  forget();
}

void LimitedRun::forget() {
  if (deadline_) loop_.cancel(*std::exchange(deadline_, std::nullopt));
  for (UniqueFd* each : {&process_, &output_, &complaint_}) {
    if (*each) loop_.unwatch_fd(each->get());
    each->reset();
  }
}

void LimitedRun::on_output() {
  const bool more = read_into(output_.get(), ended_.output);
  if (ended_.output.size() > limits_.output_bytes_max) {
    ended_.output.clear();
    kill(Ended::How::kTooLong);
  } else if (more) {
    return;
  }
  loop_.unwatch_fd(output_.get());
  output_.reset();
}

void LimitedRun::on_complaint() {
  const bool more = read_into(complaint_.get(), ended_.complaint);
  if (ended_.complaint.size() > kComplaintBytesMax) ended_.complaint.resize(kComplaintBytesMax);
  if (more) return;
  loop_.unwatch_fd(complaint_.get());
  complaint_.reset();
}

void LimitedRun::kill(Ended::How how) {
  ended_.how = how;
  host::try_send_signal(process_.get(), SIGKILL);
}

void LimitedRun::on_end() {
  const auto end = host::reap(process_.get());
  if (end && !*end) return;
  if (output_) on_output();
  if (complaint_) on_complaint();
  if (end) {
    ended_.exit_code = (*end)->exit_code;
    if ((*end)->signal != 0 && ended_.how == Ended::How::kByItself) ended_.how = Ended::How::kKilled;
  }
  forget();
  std::exchange(done_, nullptr)(std::move(ended_));
}

}  // namespace spillway::apps
