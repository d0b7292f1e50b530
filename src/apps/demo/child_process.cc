#include "apps/demo/child_process.h"

#include "host/kernel/pidfd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace spillway::apps {

namespace {

[[noreturn]] void become(const std::vector<char*>& argv, int output, pid_t parent) {
  setsid();  // Ctrl-C on the terminal reaches the parent, which stops its children in order
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  const int input = open("/dev/null", O_RDONLY);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv("/proc/self/exe", argv.data());
  _exit(127);
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& arguments, const std::string& log) {
  const UniqueFd output(open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600));
  if (!output) return Error{ErrorCode::kInternalError, std::strerror(errno), log};
  std::vector<std::string> words{"spillway"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return make_error(ErrorCode::kInternalError, "cannot start a process: {}", std::strerror(errno));
  if (pid == 0) become(argv, output.get(), parent);
  auto handle = host::open_pidfd(pid);
  if (!handle) {
    kill(pid, SIGKILL);
    return handle.error();
  }
  return ChildProcess(pid, *std::move(handle), log);
}

ChildProcess::ChildProcess(pid_t pid, UniqueFd handle, std::string log)
    : pid_(pid), handle_(std::move(handle)), log_(std::move(log)) {}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept = default;

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(handle_, other.handle_);
  std::swap(log_, other.log_);
  return *this;
}

ChildProcess::~ChildProcess() {
  stop(Duration::zero());
}

bool ChildProcess::running() {
  return handle_ && !wait(Duration::zero());
}

void ChildProcess::suspend() {
  signal(SIGSTOP);
}

void ChildProcess::resume() {
  signal(SIGCONT);
}

void ChildProcess::stop(Duration patience) {
  if (!handle_) return;
  signal(SIGCONT);
  if (patience > Duration::zero()) signal(SIGTERM);
  if (patience > Duration::zero() && wait(patience)) return;
  signal(SIGKILL);
  wait(seconds(10));
}

/// True once the process has ended; reaps it.
bool ChildProcess::wait(Duration patience) {
  pollfd ready{handle_.get(), POLLIN, 0};
  const auto timeout = static_cast<int>(std::chrono::duration_cast<milliseconds>(patience).count());
  int got = 0;
  do {
    got = poll(&ready, 1, timeout);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  ignored(host::reap(handle_.get()), "how it ended does not matter here");
  handle_.reset();
  return true;
}

void ChildProcess::signal(int number) {
  if (handle_) ignored(host::send_signal(handle_.get(), number), "a process that is gone needs no signal");
}

}  // namespace spillway::apps
