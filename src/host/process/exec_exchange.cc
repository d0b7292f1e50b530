#include "host/process/exec_exchange.h"

#include "base/unique_fd.h"
#include "runtime/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace spillway::host {

namespace {

/// A shell that leads a process group of its own; what is left of the group ends with it.
class Child {
 public:
  Child(pid_t pid, const std::string& command) : pid_(pid), command_(command) {}

  ~Child() {
    if (pid_ > 0) reap();
  }

  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Kills the rest of the process group. Returns how the shell ended.
  Outcome end() {
    const int status = reap();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    if (WIFEXITED(status)) return failed(fmt::format("ended with code {}", WEXITSTATUS(status)));
    return failed(fmt::format("ended by signal {}", WTERMSIG(status)));
  }

  /// True if the shell has ended by itself.
  bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
  }

  Error failed(const std::string& what, ErrorCode code = ErrorCode::kInternalError) const {
    return Error{code, what, command_};
  }

 private:
  int reap() {
    kill(-pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = 0;
    return status;
  }

  pid_t pid_;
  const std::string& command_;
};

Result<std::pair<pid_t, UniqueFd>> start(const std::string& command) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Error{ErrorCode::kInternalError, fmt::format("no channel: {}", std::strerror(errno)), command};
  }
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  std::string shell = "sh";
  std::string flag = "-c";
  std::string text = command;
  const std::array<char*, 4> argv{shell.data(), flag.data(), text.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/bin/sh", &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    return Error{ErrorCode::kInternalError, fmt::format("not started: {}", std::strerror(error)), command};
  fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  return std::pair(pid, std::move(ours));
}

}  // namespace

Result<std::string> exec_exchange(const std::string& command, const std::string& input, const ExecLimits& limits) {
  const Instant deadline = runtime::RealClock::read().mono + limits.time_max;
  SPILLWAY_TRY(started, start(command));
  Child child(started.first, command);
  const UniqueFd channel = std::move(started.second);
  std::string output;
  std::size_t written = 0;
  bool writing = true;
  while (true) {
    if (writing && written == input.size()) {
      shutdown(channel.get(), SHUT_WR);
      writing = false;
    }
    const Duration left = deadline - runtime::RealClock::read().mono;
    if (left <= Duration::zero()) return child.failed("took too long", ErrorCode::kTimeout);
    pollfd wait{channel.get(), static_cast<short>(writing ? POLLIN | POLLOUT : POLLIN), 0};
    const auto left_ms = std::chrono::duration_cast<milliseconds>(left).count() + 1;
    if (poll(&wait, 1, static_cast<int>(std::min<std::int64_t>(left_ms, 1000))) < 0 && errno != EINTR) {
      return child.failed(fmt::format("poll: {}", std::strerror(errno)));
    }
    if ((wait.revents & POLLOUT) != 0 && writing) {
      const ssize_t sent = send(channel.get(), input.data() + written, input.size() - written, MSG_NOSIGNAL);
      if (sent > 0) written += static_cast<std::size_t>(sent);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) writing = false;  // the client reads no more
    }
    if ((wait.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    std::array<char, 16384> buffer{};
    const ssize_t got = recv(channel.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) break;
    output.append(buffer.data(), static_cast<std::size_t>(got));
    if (output.size() > limits.output_bytes_max) {
      return child.failed(fmt::format("answered with more than {} bytes", limits.output_bytes_max),
                          ErrorCode::kRequestEntityTooLarge);
    }
  }
  while (!child.has_ended()) {  // the shell has closed its output, so it is about to end
    if (runtime::RealClock::read().mono >= deadline) return child.failed("took too long", ErrorCode::kTimeout);
    poll(nullptr, 0, 1);
  }
  SPILLWAY_TRY_VOID(child.end());
  return output;
}

}  // namespace spillway::host
