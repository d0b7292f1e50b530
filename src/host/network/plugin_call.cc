#include "host/network/plugin_call.h"

#include "api/text/duration.h"
#include "base/file.h"
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
#include <string_view>
#include <utility>

namespace spillway::host {

namespace {

constexpr int kSignalCode = 128;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("pipe", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// A socket instead of a pipe: a write to a program that has ended raises no signal.
Result<Pipe> make_input() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return errno_error("socketpair", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// A program that leads a process group; what is left of the group ends with this object.
class Group {
 public:
  explicit Group(pid_t pid) : pid_(pid) {}

  ~Group() {
    if (pid_ > 0) static_cast<void>(end());
  }

  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
  }

  int end() {
    kill(-pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalCode + WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

/// The environment of this process, except for names that the call sets.
std::vector<std::string> environment_of(const PluginCall& call) {
  std::vector<std::string> all = call.environment;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view own(*each);
    const std::string_view name = own.substr(0, own.find('=') + 1);
    if (std::ranges::none_of(call.environment, [name](const std::string& set) { return set.starts_with(name); })) {
      all.emplace_back(own);
    }
  }
  return all;
}

Result<pid_t> start(const PluginCall& call, const std::array<int, 3>& standard) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 3; ++i) posix_spawn_file_actions_adddup2(&actions, standard.at(static_cast<std::size_t>(i)), i);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigdefault(&attributes, &all);
  std::vector<std::string> words{call.program};
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  std::vector<char*> argv;
  for (std::string& each : words) argv.push_back(each.data());
  argv.push_back(nullptr);
  std::vector<std::string> environment = environment_of(call);
  std::vector<char*> envp;
  for (std::string& each : environment) envp.push_back(each.data());
  envp.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, call.program.c_str(), &actions, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return errno_error(call.program, error);
  return pid;
}

/// Reads all available bytes. False: the other end is closed.
bool drain(int fd, std::string& into, std::size_t output_max) {
  std::array<char, 16384> part{};
  while (into.size() <= output_max) {
    const ssize_t count = ::read(fd, part.data(), part.size());
    if (count == 0) return false;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    into.append(part.data(), static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

Result<PluginAnswer> call_plugin(const PluginCall& call) {
  const Instant deadline = runtime::RealClock::read().mono + call.time_max;
  SPILLWAY_TRY(input, make_input());
  SPILLWAY_TRY(output, make_pipe());
  SPILLWAY_TRY(errors, make_pipe());
  SPILLWAY_TRY(pid, start(call, {input.read.get(), output.write.get(), errors.write.get()}));
  Group group(pid);
  for (UniqueFd* theirs : {&input.read, &output.write, &errors.write}) theirs->reset();
  for (const int ours : {input.write.get(), output.read.get(), errors.read.get()}) ::fcntl(ours, F_SETFL, O_NONBLOCK);
  PluginAnswer answer;
  std::size_t written = 0;
  while (true) {
    if (input.write && written == call.input.size()) input.write.reset();
    // A process that the plug-in left behind may hold its outputs open: the plug-in's own end counts.
    const bool ended = group.has_ended();
    if (ended && output.read) drain(output.read.get(), answer.output, call.output_max);
    if (ended && errors.read) drain(errors.read.get(), answer.errors, call.output_max);
    if (ended) break;
    const Duration left = deadline - runtime::RealClock::read().mono;
    if (left <= Duration::zero()) {
      return make_error(ErrorCode::kTimeout, "no answer within {}", api::format_duration(call.time_max));
    }
    std::array<pollfd, 3> wait{pollfd{input.write ? input.write.get() : -1, POLLOUT, 0},
                               pollfd{output.read ? output.read.get() : -1, POLLIN, 0},
                               pollfd{errors.read ? errors.read.get() : -1, POLLIN, 0}};
    constexpr std::int64_t kPollMax =
        20;  // milliseconds; the end of the program wakes no descriptor if others hold them
    const auto left_ms = std::chrono::duration_cast<milliseconds>(left).count() + 1;
    if (::poll(wait.data(), wait.size(), static_cast<int>(std::min(left_ms, kPollMax))) < 0 && errno != EINTR) {
      return errno_error("poll", errno);
    }
    if (wait[0].revents != 0) {
      const ssize_t count =
          ::send(input.write.get(), call.input.data() + written, call.input.size() - written, MSG_NOSIGNAL);
      if (count > 0) written += static_cast<std::size_t>(count);
      if (count < 0 && errno != EINTR && errno != EAGAIN) input.write.reset();  // the plug-in reads no more
    }
    if (wait[1].revents != 0 && !drain(output.read.get(), answer.output, call.output_max)) output.read.reset();
    if (wait[2].revents != 0 && !drain(errors.read.get(), answer.errors, call.output_max)) errors.read.reset();
    if (std::max(answer.output.size(), answer.errors.size()) > call.output_max) {
      return make_error(ErrorCode::kInternalError, "its output exceeded {} bytes", call.output_max);
    }
  }
  answer.code = group.end();
  return answer;
}

}  // namespace spillway::host
