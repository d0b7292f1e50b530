#include "host/process/container_process.h"

#include "host/cgroup/cgroup_kill.h"
#include "host/cgroup/cgroup_limits.h"
#include "host/cgroup/memory_stat.h"
#include "host/kernel/call_filter.h"
#include "host/kernel/kernel_file.h"
#include "host/process/pod_root.h"
#include "host/spawn/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::size_t kPumpBytesMax = 65'536;      // limit for one stream in one turn of the loop
constexpr std::size_t kDrainBytesMax = 1'048'576;  // a full pipe still holds this much after the end
constexpr Duration kPaceInterval = milliseconds(10);

Result<std::pair<UniqueFd, UniqueFd>> make_pipe() {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("pipe", errno);
  std::pair<UniqueFd, UniqueFd> pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return pipe;
}

}  // namespace

std::vector<MountStep> container_mounts(CgroupVersion version) {
  std::vector<MountStep> steps;
  const auto mount = [&](const char* type, const char* target) {
    steps.push_back(
        {.kind = MountStep::Kind::kMount, .target = target, .source = type, .type = type, .flags = kPlainFiles});
  };
  mount("proc", "/proc");
  // Hierarchies of version 1 are not mounted.
  if (version == CgroupVersion::kV2) {
    mount("cgroup2", "/sys/fs/cgroup");
    steps.push_back({.kind = MountStep::Kind::kProtect, .target = "/sys/fs/cgroup", .attributes = MOUNT_ATTR_RDONLY});
  }
  return steps;
}

ContainerProcess::ContainerProcess(runtime::Loop& loop, telemetry::Log log, Owner& owner, Start start)
    : loop_(loop), log_(std::move(log)), owner_(owner), start_(std::move(start)) {
  stderr_.channel = api::Channel::kErr;
}

ContainerProcess::~ContainerProcess() {
  release();
}

Outcome ContainerProcess::make_cgroup() {
  const agent::StartContainer& command = start_.command;
  const Outcome cleared = remove_tree(*start_.pod, command.name);  // files of an earlier attempt
  if (!cleared) return cleared.error();
  SPILLWAY_TRY(cgroup, start_.pod->create_child(command.name));
  cgroup_ = std::move(cgroup);
  SPILLWAY_TRY_VOID(apply_cpuset(cgroup_, command.cpuset.cpus, command.cpuset.memory_nodes));
  return apply_limits(cgroup_, {.memory = command.memory_limit,
                                .cpu_shares = cpu_shares_of(command.cpu_request_milli),
                                .cpu_quota_micros = cpu_quota_micros_of(command.cpu_limit_milli.value_or(0)),
                                .oom_kills_group = true});
}

void ContainerProcess::share_cpus(std::string_view cpus) {
  if (!start_.command.cpuset.shares || !cgroup_) return;
  const Outcome moved = apply_cpuset(cgroup_, cpus, {});
  if (!moved) log_.warning("container keeps its CPUs", {{"cgroup", cgroup_.path()}, {"error", moved.error().text()}});
}

/// Volumes and files of the container, outer mounts before inner ones. `mounts` has to stay valid.
void add_volumes(std::vector<MountStep>& steps, const std::vector<OpenedMount>& mounts) {
  std::vector<std::pair<std::string, const OpenedMount*>> placed;
  std::vector<std::string> paths;
  for (const OpenedMount& each : mounts) {
    placed.emplace_back(path_in_view(each.path), &each);
    paths.push_back(placed.back().first);
  }
  std::ranges::stable_sort(placed, {}, [](const auto& each) { return std::ranges::count(each.first, '/'); });
  RoomSteps room = room_steps(paths);
  std::ranges::move(room.before, std::back_inserter(steps));
  for (const auto& [path, mount] : placed)
    steps.push_back({.kind = MountStep::Kind::kPlace,
                     .target = path,
                     .source = "a volume",
                     .fd = mount->mount.get(),
                     .is_file = !mount->is_directory});
  std::ranges::move(room.after, std::back_inserter(steps));
}

/// Binds the host's file `host_path` to `path` below a root that is otherwise read-only.
Outcome add_device(std::vector<MountStep>& steps, std::vector<UniqueFd>& held, const std::string& path,
                   const std::string& host_path, std::uint64_t attributes) {
  struct stat status{};
  if (::stat(host_path.c_str(), &status) != 0) return errno_error(host_path, errno);
  if (S_ISCHR(status.st_mode) && (status.st_mode & S_IROTH) == 0)
    return invalid(host_path, "its permissions ({:04o}) keep it from the ids of a pod", status.st_mode & 07777);
  SPILLWAY_TRY(tree, open_detached(host_path));
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    steps.push_back({.kind = MountStep::Kind::kFolder, .target = path.substr(0, slash)});
  steps.push_back(
      {.kind = S_ISDIR(status.st_mode) ? MountStep::Kind::kFolder : MountStep::Kind::kFile, .target = path});
  steps.push_back({.kind = MountStep::Kind::kMove, .target = path, .source = host_path, .fd = tree.get()});
  steps.push_back({.kind = MountStep::Kind::kProtect, .target = path, .attributes = attributes});
  held.push_back(std::move(tree));
  return {};
}

Result<Confinement> ContainerProcess::confinement(std::vector<UniqueFd>& held) const {
  const agent::ContainerSecurity& security = start_.command.security;
  Confinement made;
  made.first_id = *start_.first_id;
  made.own_pids = start_.own_pids;
  made.uid = security.uid;
  made.gid = security.gid;
  made.groups.assign(security.groups.begin(), security.groups.end());
  made.capabilities = security.capabilities;
  if (security.filters_calls) {
    made.calls = default_call_filter(security.capabilities);
    if (made.calls.empty()) return invalid({}, "no seccomp filter is known for this architecture");
  }
  made.mounts = container_mounts(cgroup_.version());
  std::vector<MountStep>& steps = made.mounts;
  const agent::DeviceGrant& devices = start_.command.devices;
  if (!devices.nodes.empty() || !devices.mounts.empty() || !start_.mounts.empty()) {
    steps.push_back({.kind = MountStep::Kind::kUnprotect, .target = "/", .attributes = MOUNT_ATTR_RDONLY});
    for (const agent::DeviceNode& node : devices.nodes) {
      const bool writes = node.permissions.empty() || node.permissions.contains('w');
      SPILLWAY_TRY_VOID(add_device(steps, held, node.container_path, node.host_path,
                                   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | (writes ? 0 : MOUNT_ATTR_RDONLY)));
    }
    for (const agent::DeviceMount& each : devices.mounts)
      SPILLWAY_TRY_VOID(add_device(steps, held, each.container_path, each.host_path,
                                   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (each.read_only ? MOUNT_ATTR_RDONLY : 0)));
    add_volumes(steps, start_.mounts);
    steps.push_back({.kind = MountStep::Kind::kProtect, .target = "/", .attributes = MOUNT_ATTR_RDONLY});
  }
  if (security.read_only_root)
    steps.push_back(
        {.kind = MountStep::Kind::kProtect, .target = std::string(kPodHome), .attributes = MOUNT_ATTR_RDONLY});
  return made;
}

/// Opens the streams: our ends and the program's. A terminal serves as all three.
Outcome ContainerProcess::open_streams(Ends& in, Ends& out, Ends& err) {
  if (start_.command.terminal) {
    UniqueFd root;
    if (!start_.first_id) root.reset(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    SPILLWAY_TRY(terminal, open_terminal(start_.first_id ? start_.namespaces->root() : root));
    plan_.terminal = true;
    out.first.reset(::fcntl(terminal.ours.get(), F_DUPFD_CLOEXEC, 3));
    console_->open_terminal(std::move(terminal.ours), start_.command.standard_input);
    in.second.reset(::fcntl(terminal.theirs.get(), F_DUPFD_CLOEXEC, 3));
    out.second = std::move(terminal.theirs);
    return out.first && in.second ? Outcome() : Outcome(errno_error("terminal", errno));
  }
  if (start_.command.standard_input) {
    SPILLWAY_TRY(made, make_pipe());
    ::fcntl(made.first.get(), F_SETFL, 0);  // the program's; ours does not block
    ::fcntl(made.second.get(), F_SETFL, O_NONBLOCK);
    console_->open(std::move(made.second), start_.command.input_ends_once);
    in.second = std::move(made.first);
  }
  SPILLWAY_TRY(made_out, make_pipe());
  SPILLWAY_TRY(made_err, make_pipe());
  out = std::move(made_out);
  err = std::move(made_err);
  return {};
}

/// Prepares the settings common to the container's first process and to processes started later.
Outcome ContainerProcess::plan_process(std::vector<UniqueFd>& held) {
  plan_.argv = start_.command.argv;
  for (const auto& [name, value] : start_.command.env) plan_.environment.push_back(fmt::format("{}={}", name, value));
  plan_.working_dir = start_.command.working_dir;
  plan_.oom_score_adj = start_.command.oom_score_adj;
  plan_.cgroup = &cgroup_;
  plan_.open_files_max = start_.open_files_max;
  plan_.namespaces = start_.namespaces;
  if (start_.first_id) {
    SPILLWAY_TRY(confined, confinement(held));
    plan_.confinement = std::move(confined);
  }
  return {};
}

Outcome ContainerProcess::spawn_process() {
  Ends in;
  Ends out;
  Ends err;
  SPILLWAY_TRY_VOID(open_streams(in, out, err));
  std::vector<UniqueFd> held;
  SPILLWAY_TRY_VOID(plan_process(held));
  plan_.stdin_fd = in.second ? in.second.get() : -1;
  plan_.stdout_fd = out.second.get();
  plan_.stderr_fd = err.second ? err.second.get() : out.second.get();
  plan_.sysctls = start_.sysctls;
  plan_.shared_pids = start_.pids ? start_.pids.get() : -1;
  if (start_.supervision) SPILLWAY_TRY_VOID(prepare_supervisor(out, err, held));
  Result<SpawnedProcess> process = spawn(plan_);
  plan_.supervisor.reset();
  start_.pids.reset();
  start_.mounts.clear();
  if (!process) return process.error();
  if (supervisor_) supervisor_->live(process->supervisor, std::move(process->supervisor_pidfd));
  status_ = std::move(process->status);
  if (!supervisor_) {
    stdout_.pipe = std::move(out.first);
    stderr_.pipe = std::move(err.first);
  }
  return hold_process(process->pid, std::move(process->pidfd));
}

Outcome ContainerProcess::hold_process(pid_t pid, UniqueFd pidfd) {
  pid_ = pid;
  pidfd_ = std::move(pidfd);
  handle_ = std::make_shared<ContainerHandle>();
  handle_->name = name();
  handle_->pidfd.reset(::fcntl(pidfd_.get(), F_DUPFD_CLOEXEC, 3));
  handle_->directory.reset(::fcntl(cgroup_.fd(Controller::kMemory), F_DUPFD_CLOEXEC, 3));
  handle_->running = false;
  if (plan_.confinement && plan_.confinement->own_pids) {
    handle_->status.reset(::open(fmt::format("/proc/{}/status", pid_).c_str(), O_RDONLY | O_CLOEXEC));
    handle_->call.reset(::open(fmt::format("/proc/{}/syscall", pid_).c_str(), O_RDONLY | O_CLOEXEC));
  }
  return {};
}

Outcome ContainerProcess::start() {
  if (start_.command.argv.empty()) return invalid(start_.command.name, "no command specified");
  SPILLWAY_TRY_VOID(make_cgroup());
  Outcome made;
  Result<ContainerLog> log_file = ContainerLog::create(start_.log_path, start_.log_limits);
  if (log_file) {
    if (!start_.supervision) log_file_ = *std::move(log_file);  // else the supervisor writes the log
    started_at_ = loop_.now().wall;
    made = spawn_process();
  } else {
    made = log_file.error();
  }
  if (!made) {
    ignored(start_.pod->remove_child(start_.command.name), "the pod's removal takes it along");
    return made;
  }
  watch();
  return {};
}

void ContainerProcess::watch() {
  if (status_) loop_.watch_fd(status_.get(), POLLIN, [this] { on_status(); });
  loop_.watch_fd(pidfd_.get(), POLLIN, [this] { on_process_end(); });
  for (Output* output : {&stdout_, &stderr_}) watch_output(*output);
  if (!supervisor_) return;
  loop_.watch_fd(supervisor_->pidfd(), POLLIN, [this] { on_supervisor_end(); });
  console_->set_callbacks([this] { relay(); },
                          [this] { static_cast<void>(supervisor_->send_order(SupervisorOrder::kCloseInput)); });
}

Result<UniqueFd> ContainerProcess::pids() const {
  if (end_ || status_ || !failure_.empty() || killing_)
    return make_error(ErrorCode::kNotFound, "unable to find target container {}", name());
  if (!plan_.confinement || !plan_.confinement->own_pids) return UniqueFd();
  // The process number cannot be reused until this process has reaped it.
  UniqueFd fd(::open(fmt::format("/proc/{}/ns/pid", pid_).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("processes of the target container", errno);
  return fd;
}

Result<EntryPlan> ContainerProcess::entry(std::vector<std::string> argv) const {
  if (end_ || status_ || !failure_.empty() || killing_)
    return make_error(ErrorCode::kNotFound, "container not found (\"{}\")", name());
  if (argv.empty()) return invalid({}, "no command specified");
  EntryPlan made{.argv = std::move(argv),
                 .environment = plan_.environment,
                 .working_dir = plan_.working_dir,
                 .oom_score_adj = plan_.oom_score_adj,
                 .cgroup = &cgroup_,
                 .namespaces = {},
                 .open_files_max = plan_.open_files_max};
  const auto add = [&](UniqueFd fd, const char* name) -> Outcome {
    if (!fd) return errno_error(name, errno);
    made.namespaces.push_back(std::move(fd));
    return {};
  };
  if (start_.namespaces != nullptr)
    for (const int fd : start_.namespaces->fds())
      SPILLWAY_TRY_VOID(add(UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 3)), "namespace of the pod"));
  if (!plan_.confinement) return made;
  made.confinement = &*plan_.confinement;
  made.users = start_.namespaces->users();
  for (const char* space : {"cgroup", "pid"}) {
    if (!plan_.confinement->own_pids && std::string_view(space) == "pid") continue;
    // The process number cannot be reused until this process has reaped it.
    SPILLWAY_TRY_VOID(add(UniqueFd(::open(fmt::format("/proc/{}/ns/{}", pid_, space).c_str(), O_RDONLY | O_CLOEXEC)),
                          "namespace of the container"));
  }
  SPILLWAY_TRY_VOID(add(UniqueFd(::fcntl(mounts_.get(), F_DUPFD_CLOEXEC, 3)), "mounts of the container"));
  return made;
}

void ContainerProcess::on_status() {
  const std::optional<StartReport> report = read_start_report(plan_, status_.get());
  if (!report) return;
  loop_.unwatch_fd(status_.get());
  status_.reset();
  failure_ = report->failure;
  failure_reason_ = report->reason;
  if (!failure_.empty()) return;  // the end follows
  handle_->running = true;
  if (plan_.confinement) mounts_.reset(::open(fmt::format("/proc/{}/ns/mnt", pid_).c_str(), O_RDONLY | O_CLOEXEC));
  const agent::StartContainer& command = start_.command;
  owner_.on_started({command.uid, command.name, command.attempt, pid_, started_at_});
}

void ContainerProcess::on_process_end() {
  finished_at_ = loop_.now().wall;
  if (supervisor_) {
    loop_.unwatch_fd(pidfd_.get());
    end_ = supervised_end();
  } else {
    const Result<std::optional<ProcessEnd>> end = reap(pidfd_.get());
    if (end && !*end) return;
    if (!end) log_.error("exit status lost", {{"container", name()}, {"error", end.error().text()}});
    loop_.unwatch_fd(pidfd_.get());
    end_ = end ? end->value_or(ProcessEnd{255, 0}) : ProcessEnd{255, 0};
  }
  if (handle_->ended_for && end_->signal == SIGKILL) end_ = ProcessEnd{128 + SIGTERM, SIGTERM};
  if (status_) on_status();
  check_empty();
}

bool ContainerProcess::pump(Output& output, std::size_t bytes_max) {
  std::array<char, 16'384> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::string records;
  bool open = true;
  for (std::size_t total = 0; total < bytes_max;) {
    const ssize_t got = ::read(output.pipe.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    open = got > 0 || (got < 0 && errno == EAGAIN);
    if (got <= 0) break;
    total += static_cast<std::size_t>(got);
    const std::string_view said(chunk.data(), static_cast<std::size_t>(got));
    output.framer.add(said, loop_.now().wall, records);
    console_->say(output.channel, said);
  }
  write_log(records);
  return open;
}

void ContainerProcess::watch_output(Output& output) {
  if (!output.pipe || std::exchange(output.watched, true)) return;
  loop_.watch_fd(output.pipe.get(), POLLIN, [this, &output] {
    if (!pump(output, kPumpBytesMax)) return close_output(output);
    if (console_->is_held_up()) pace();
  });
}

void ContainerProcess::pace() {
  for (Output* output : {&stdout_, &stderr_})
    if (output->pipe && std::exchange(output->watched, false)) loop_.unwatch_fd(output->pipe.get());
  if (std::exchange(relay_watched_, false)) loop_.unwatch_fd(relay_.get());
  if (pace_timer_) return;
  pace_timer_ = loop_.at(loop_.now().mono + kPaceInterval, [this] {
    pace_timer_.reset();
    if (console_->is_held_up()) return pace();
    for (Output* output : {&stdout_, &stderr_}) watch_output(*output);
    read_relay();
  });
}

void ContainerProcess::close_output(Output& output) {
  if (!output.pipe) return;
  if (std::exchange(output.watched, false)) loop_.unwatch_fd(output.pipe.get());
  output.pipe.reset();
  std::string records;
  output.framer.finish(loop_.now().wall, records);
  write_log(records);
}

void ContainerProcess::write_log(std::string_view records) {
  if (records.empty() || !log_file_) return;
  const Outcome written = log_file_->write(records);
  if (!written && !log_failed_)
    log_.warning("container log incomplete", {{"container", name()}, {"error", written.error().text()}});
  log_failed_ = !written;
}

void ContainerProcess::stop(Duration grace) {
  if (grace <= Duration::zero()) return kill();
  if (end_ || killing_) return;
  const Instant due = loop_.now().mono + grace;
  if (kill_due_ && *kill_due_ <= due) return;
  if (!kill_due_) {
    if (status_) on_status();  // a started program gets its signal, even before its start has been reported
    handle_->terminate();
    resolve_doubt();
  }
  kill_due_ = due;
  if (grace_timer_) loop_.cancel(*grace_timer_);
  grace_timer_ = loop_.at(due, [this] {
    grace_timer_.reset();
    kill();
  });
}

void ContainerProcess::resolve_doubt() {
  if (!handle_->in_doubt) return;
  doubt_timer_ = loop_.at(loop_.now().mono + doubt_waits_.next(), [this] {
    doubt_timer_.reset();
    if (end_ || killing_) return;
    handle_->recheck();
    resolve_doubt();
  });
}

void ContainerProcess::kill() {
  killing_ = true;
  // The process may not have joined its cgroup yet.
  if (!end_) ignored(send_signal(pidfd_.get(), SIGKILL), "it ended by itself");
  const Outcome killed = kill_all(cgroup_);
  if (!killed) log_.warning("cgroup not killed", {{"cgroup", cgroup_.path()}, {"error", killed.error().text()}});
  if (empty_timer_) return;
  empty_timer_ = loop_.at(loop_.now().mono + empty_waits_.next(), [this] {
    empty_timer_.reset();
    if (end_)
      check_empty();
    else
      kill();  // again: a process may have forked meanwhile
  });
}

void ContainerProcess::check_empty() {
  const Result<bool> empty = is_empty(cgroup_);
  if (empty && *empty) return supervisor_ && !drained_ ? drain() : complete();
  kill();  // kills processes that the first one left behind
}

void ContainerProcess::complete() {
  const std::optional<std::uint64_t> oom_kills = read_oom_kills(cgroup_);
  for (Output* output : {&stdout_, &stderr_}) {
    if (output->pipe) static_cast<void>(pump(*output, kDrainBytesMax));
    close_output(*output);
  }
  read_relay();
  console_->close();
  release();
  if (mounts_) owner_.dispose(std::move(mounts_));
  const Outcome removed = start_.pod->remove_child(name());
  ignored(removed, "the next attempt or the pod's removal tries again");
  const agent::StartContainer& command = start_.command;
  if (!failure_.empty() && !adopted_)
    return owner_.on_failed({command.uid, command.name, command.attempt, failure_reason_, failure_});
  const ProcessEnd end = end_.value_or(ProcessEnd{255, 0});
  owner_.on_exited(
      {.uid = command.uid,
       .name = command.name,
       .attempt = command.attempt,
       .exit_code = end.exit_code,
       .signal = end.signal,
       .oom_killed = oom_kills && *oom_kills > 0 && end.exit_code != 0,
       .started_at = started_at_,
       .finished_at = finished_at_,
       .container_id = {},
       .reason = lost_ ? "ContainerStatusUnknown" : "",
       .message = lost_ ? "The supervisor of the container has ended: the exit status is unknown" : failure_});
}

void ContainerProcess::release() {
  console_->set_callbacks({}, {});
  if (std::exchange(relay_watched_, false)) loop_.unwatch_fd(relay_.get());
  relay_.reset();
  if (drain_) loop_.unwatch_fd(drain_.get());
  drain_.reset();
  if (supervisor_ && supervisor_->pidfd() >= 0) loop_.unwatch_fd(supervisor_->pidfd());
  for (std::optional<runtime::Loop::TimerId>* timer :
       {&grace_timer_, &empty_timer_, &doubt_timer_, &pace_timer_, &drain_timer_}) {
    if (*timer) loop_.cancel(**timer);
    timer->reset();
  }
  for (Output* output : {&stdout_, &stderr_}) {
    if (std::exchange(output->watched, false)) loop_.unwatch_fd(output->pipe.get());
    output->pipe.reset();
  }
  for (UniqueFd* fd : {&status_, &pidfd_}) {
    if (*fd) loop_.unwatch_fd(fd->get());
    fd->reset();
  }
}

}  // namespace spillway::host
