#include "host/containerd/daemon.h"

#include "base/file.h"
#include "host/containerd/processes.h"
#include "host/containerd/shims.h"
#include "host/cri/cri_calls.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/pidfd.h"
#include "host/volumes/mount_points.h"
#include "runtime/clock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLogBytesMax = std::size_t{16} << 20;  // a longer log is set aside at the next start
constexpr std::size_t kLogTailBytes = 4096;
constexpr Duration kTakeOverMax = seconds(10);  // time in which a daemon that runs already must answer
constexpr Duration kKillMax = seconds(5);       // for a killed process to go
constexpr const char* kShell = "/bin/sh";

std::string boot_id() {
  const auto text = read_file("/proc/sys/kernel/random/boot_id");
  if (!text) return {};
  std::string_view rest = *text;
  return std::string(take_line(rest));
}

Outcome make_private_directory(const std::string& path) {
  SPILLWAY_TRY_VOID(make_directories(path));
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return errno_error(path, errno);
  if (!S_ISDIR(found.st_mode)) return invalid(path, "expected a directory");
  if (found.st_uid != ::geteuid())
    return Error{ErrorCode::kForbidden, "it belongs to another user; remove it, or give it to root", path};
  if (::chmod(path.c_str(), 0700) != 0) return errno_error(path, errno);
  return {};
}

void end_process(int pidfd, Duration grace) {
  ignored(send_signal(pidfd, SIGTERM), "an ended process is the aim");
  if (!has_ended_within(pidfd, grace)) {
    ignored(send_signal(pidfd, SIGKILL), "an ended process is the aim");
    has_ended_within(pidfd, kKillMax);
  }
  ignored(reap(pidfd), "one that was taken over is no child of this process");
}

/// The last line of the daemon's log, for an error.
std::string last_words(const DaemonPlaces& places) {
  const UniqueFd log(::open(places.log().c_str(), O_RDONLY | O_CLOEXEC));
  if (!log) return {};
  const off_t end = ::lseek(log.get(), 0, SEEK_END);
  ::lseek(log.get(), std::max<off_t>(0, end - static_cast<off_t>(kLogTailBytes)), SEEK_SET);
  const auto text = read_open_file(log.get(), places.log());
  if (!text) return {};
  std::string_view rest = *text;
  while (rest.ends_with('\n')) rest.remove_suffix(1);
  const std::size_t line = rest.rfind('\n');
  return std::string(line == std::string_view::npos ? rest : rest.substr(line + 1));
}

Error not_started(const DaemonPlaces& places, std::string_view what) {
  const std::string said = last_words(places);
  return Error{ErrorCode::kServiceUnavailable,
               fmt::format("{}{}{}; --runtime process does without it", what, said.empty() ? "" : ": ", said),
               places.log()};
}

/// The environment of this process, in which the programs are found, and nothing of what a service manager gave to this
/// process alone.
std::vector<std::string> environment_for(const DaemonSettings& settings) {
  std::string path;
  for (const std::string& program : {settings.containerd, settings.shim, settings.low_level})
    path += fs::path(program).parent_path().string() + ":";
  std::string inherited = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  std::vector<std::string> made;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text(*each);
    if (text.starts_with("PATH=")) {
      inherited = text.substr(5);
      continue;
    }
    const bool is_ours = text.starts_with("NOTIFY_SOCKET=") || text.starts_with("WATCHDOG_") ||
                         text.starts_with("LISTEN_") || text.starts_with("TMPDIR=");
    if (!is_ours) made.emplace_back(text);
  }
  made.push_back("PATH=" + path + inherited);
  return made;
}

Result<UniqueFd> open_log(const DaemonPlaces& places) {
  std::error_code error;
  if (const auto size = fs::file_size(places.log(), error); !error && size > kLogBytesMax)
    fs::rename(places.log(), places.log() + ".1", error);
  UniqueFd log(::open(places.log().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) return errno_error(places.log(), errno);
  return log;
}

/// A containerd that begins when a line comes through the pipe, and never if this process is killed before that.
struct HeldDaemon {
  pid_t pid = 0;
  UniqueFd begin;  // the end of the pipe to write to
};

Result<HeldDaemon> spawn_daemon(const DaemonPlaces& places, const DaemonSettings& settings) {
  SPILLWAY_TRY(log, open_log(places));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("pipe2", errno);
  const UniqueFd wait(ends[0]);
  UniqueFd begin(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, wait.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, log.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, log.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigdefault(&attributes, &all);
  std::vector<std::string> words{
      "sh", "-c", "read -r begin && exec \"$@\" </dev/null", "sh", settings.containerd, "--config", places.config()};
  std::vector<std::string> variables = environment_for(settings);
  std::vector<char*> argv;
  for (std::string& each : words) argv.push_back(each.data());
  argv.push_back(nullptr);
  std::vector<char*> env;
  for (std::string& each : variables) env.push_back(each.data());
  env.push_back(nullptr);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, kShell, &actions, &attributes, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return errno_error(kShell, error);
  return HeldDaemon{pid, std::move(begin)};
}

/// Waits for an answer to a CRI call. nullopt: it gave none in time, or has ended.
std::optional<std::string> wait_for_answer(const DaemonPlaces& places, const Daemon& daemon, Duration limit,
                                           const std::atomic<bool>& cancelled) {
  const Instant deadline = runtime::RealClock::read().mono + limit;
  while (!cancelled && runtime::RealClock::read().mono < deadline) {
    std::error_code error;
    if (fs::exists(places.socket(), error)) {
      if (const auto name = ask_runtime_name(places.socket())) return name->version;
    }
    if (has_ended_within(daemon.process.get(), kDaemonPoll)) return std::nullopt;
  }
  return std::nullopt;
}

/// Detaches all mounts below the directory, the inner ones first.
Outcome unmount_below(const std::string& directory) {
  const std::string prefix = directory + "/";
  SPILLWAY_TRY(before, read_file("/proc/self/mountinfo"));
  std::vector<std::string> points = mounts_below(mount_points(before), prefix, prefix);
  std::ranges::reverse(points);
  for (const std::string& each : points) ::umount2(each.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
  SPILLWAY_TRY(after, read_file("/proc/self/mountinfo"));
  const std::vector<std::string> left = mounts_below(mount_points(after), prefix, prefix);
  if (left.empty()) return {};
  return Error{ErrorCode::kConflict, "it cannot be unmounted", left.front()};
}

/// Removes the files that a daemon needs while it or a pod runs; images stay.
Outcome clear_state(const DaemonPlaces& places) {
  SPILLWAY_TRY_VOID(unmount_below(places.base));
  std::error_code error;
  for (const std::string& each :
       {places.state(), places.temporary(), places.socket(), places.socket() + ".ttrpc", places.process_file()}) {
    fs::remove_all(each, error);
    if (error) return Error{ErrorCode::kInternalError, "cannot be removed: " + error.message(), each};
  }
  return {};
}

/// True if the last daemon ran before the machine was started again: nothing of it can be alive.
bool is_of_earlier_boot(const DaemonPlaces& places) {
  const auto text = read_file(places.process_file());
  const auto record = text ? parse_daemon_process(*text) : std::nullopt;
  return record && record->boot != boot_id();
}

}  // namespace

std::string to_text(const DaemonProcess& process) {
  return fmt::format("{} {} {}\n", process.pid, process.started_ticks, process.boot);
}

std::optional<DaemonProcess> parse_daemon_process(std::string_view text) {
  const std::string_view line = take_line(text);
  const std::size_t first = line.find(' ');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = line.find(' ', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto pid = parse_number(line.substr(0, first));
  const auto ticks = parse_number(line.substr(first + 1, second - first - 1));
  constexpr std::uint64_t kPidMax = std::uint64_t{1} << 22;  // the kernel's
  if (!pid || *pid == 0 || *pid > kPidMax || !ticks) return std::nullopt;
  return DaemonProcess{static_cast<pid_t>(*pid), *ticks, std::string(line.substr(second + 1))};
}

std::optional<Daemon> find_daemon(const DaemonPlaces& places) {
  const auto text = read_file(places.process_file());
  const auto record = text ? parse_daemon_process(*text) : std::nullopt;
  if (!record || record->boot != boot_id()) return std::nullopt;
  Daemon daemon{.pid = record->pid, .process = try_open_pidfd(record->pid), .version = {}, .taken_over = true};
  if (!daemon.process || start_ticks(record->pid) != record->started_ticks) return std::nullopt;
  if (has_ended_within(daemon.process.get(), Duration::zero())) return std::nullopt;
  return daemon;
}

Result<Daemon> start_daemon(const DaemonPlaces& places, const DaemonSettings& settings,
                            const std::atomic<bool>& cancelled) {
  SPILLWAY_TRY_VOID(check_places(places));
  SPILLWAY_TRY_VOID(make_private_directory(places.base));
  const std::string wanted = fmt::format("# {}\n{}", settings.containerd, daemon_config(places, settings));
  const auto written = read_file(places.config());
  if (auto found = find_daemon(places)) {
    const bool same = written && *written == wanted;
    if (same) {
      if (auto version = wait_for_answer(places, *found, kTakeOverMax, cancelled)) {
        found->version = *std::move(version);
        return *std::move(found);
      }
    }
    end_process(found->process.get(), kDaemonEndMax);  // the daemon's containers keep running
  }
  if (is_of_earlier_boot(places)) SPILLWAY_TRY_VOID(clear_state(places));
  SPILLWAY_TRY_VOID(make_private_directory(places.temporary()));
  SPILLWAY_TRY_VOID(replace_file(places.config(), wanted));
  ::unlink(places.socket().c_str());
  SPILLWAY_TRY(held, spawn_daemon(places, settings));
  Daemon daemon{.pid = held.pid, .process = try_open_pidfd(held.pid), .version = {}};
  if (!daemon.process) return errno_error("pidfd_open", errno);
  // The record is there before containerd is: a kill in between leaves no daemon that the next start would not know.
  const DaemonProcess record{held.pid, start_ticks(held.pid).value_or(0), boot_id()};
  SPILLWAY_TRY_VOID(replace_file(places.process_file(), to_text(record)));
  if (::write(held.begin.get(), "\n", 1) != 1) return errno_error("pipe", errno);
  auto version = wait_for_answer(places, daemon, kDaemonStartMax, cancelled);
  if (!version) {
    const bool ended = has_ended_within(daemon.process.get(), Duration::zero());
    end_process(daemon.process.get(), kDaemonEndMax);
    if (cancelled) return make_error(ErrorCode::kServiceUnavailable, "containerd: the start was cancelled");
    return not_started(places, ended ? "containerd has ended" : "containerd does not answer");
  }
  daemon.version = *std::move(version);
  return daemon;
}

Outcome end_daemon(const DaemonPlaces& places, Daemon daemon) {
  end_process(daemon.process.get(), kDaemonEndMax);
  end_shims(places);
  return clear_state(places);
}

Outcome end_left_daemon(const DaemonPlaces& places) {
  std::error_code error;
  if (!fs::exists(places.process_file(), error)) return {};
  if (auto found = find_daemon(places)) return end_daemon(places, *std::move(found));
  end_shims(places);
  return clear_state(places);
}

}  // namespace spillway::host
