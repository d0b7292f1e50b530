// A container's dealings with its supervisor: start, output for attached clients, exit status.
#include "host/process/container_process.h"
#include "host/process/kept_records.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace spillway::host {
namespace {

constexpr Duration kDrainMax = seconds(2);  // a disk that hangs holds no end up
constexpr std::size_t kPacketBytesMax = 16'385;
constexpr int kPacketsAtOnce = 64;

}  // namespace

Outcome ContainerProcess::prepare_supervisor(const Ends& out, const Ends& err, std::vector<UniqueFd>& held) {
  SPILLWAY_TRY(made, Supervisor::prepare({.record = container_record(start_.command),
                                          .log_path = start_.log_path,
                                          .log_limits = start_.log_limits,
                                          .started_at = started_at_}));
  const bool terminal = start_.command.terminal;
  if (!terminal) held.push_back(console_->share_input());
  SupervisorPlan plan;
  plan.program = start_.supervision->program;
  plan.cgroup = start_.supervision->cgroup;
  plan.descriptors = made.descriptors();
  plan.state = plan.descriptors.front().first;
  plan.descriptors.emplace_back(out.first.get(), kStdoutFd);
  plan.descriptors.emplace_back(err.first.get(), kStderrFd);
  plan.descriptors.emplace_back(terminal ? out.first.get() : held.back().get(), kStdinFd);
  plan.descriptors.emplace_back(start_.supervision->volumes, kVolumesFd);
  if (start_.namespaces != nullptr) {
    const PodNamespaces::Parts& parts = start_.namespaces->parts();
    for (const auto& [part, number] : {std::pair(&parts.ipc, kIpcFd), std::pair(&parts.network, kNetworkFd),
                                       std::pair(&parts.host_name, kHostNameFd), std::pair(&parts.mounts, kMountsFd),
                                       std::pair(&parts.users, kUsersFd), std::pair(&parts.root, kRootFd)})
      plan.descriptors.emplace_back(part->get(), number);
  }
  plan_.supervisor = std::move(plan);
  supervisor_ = std::move(made);
  return {};
}

Outcome ContainerProcess::adopt(Supervisor supervisor) {
  SPILLWAY_TRY(known, supervisor.state());
  SPILLWAY_TRY(cgroup, start_.pod->create_child(name()));
  cgroup_ = std::move(cgroup);
  const agent::StartContainer& command = start_.command;
  std::vector<UniqueFd> held;
  SPILLWAY_TRY_VOID(plan_process(held));
  UniqueFd process = supervisor.copy(kProcessFd);
  if (!process) return invalid("supervisor", "it does not hold its container's process");
  UniqueFd input = supervisor.copy(kStdinFd);
  if (command.terminal)
    console_->open_terminal(std::move(input), command.standard_input);
  else if (command.standard_input && input)
    console_->open(std::move(input), command.input_ends_once);
  supervisor_ = std::move(supervisor);
  adopted_ = true;
  started_at_ = WallTime(microseconds(known.started_at_micros));
  SPILLWAY_TRY_VOID(hold_process(known.process, std::move(process)));
  handle_->running = true;
  if (plan_.confinement) mounts_.reset(::open(fmt::format("/proc/{}/ns/mnt", pid_).c_str(), O_RDONLY | O_CLOEXEC));
  watch();
  return {};
}

Bytes ContainerProcess::log_size() const {
  if (!supervisor_) return log_file_ ? log_file_->size() : Bytes{};
  const auto known = supervisor_->state();
  return known ? Bytes{static_cast<std::int64_t>(known->log_bytes)} : Bytes{};
}

std::optional<ProcessEnd> ContainerProcess::supervised_end() {
  const auto known = supervisor_->state();
  if (known && known->phase != SupervisedPhase::kRuns) finished_at_ = WallTime(microseconds(known->finished_at_micros));
  const std::optional<ProcessEnd> end = read_end(*supervisor_, pid_);
  lost_ = !end;
  return end.value_or(ProcessEnd{128 + SIGKILL, 0});
}

/// From now on the container's output is lost, and its exit status unknown.
void ContainerProcess::on_supervisor_end() {
  loop_.unwatch_fd(supervisor_->pidfd());
  ignored(reap(supervisor_->pidfd()), "it may be another agent's child");
  if (end_) return;
  log_.error("the supervisor of a container has died: the container is ended", {{"container", name()}});
  kill();
}

/// Starts the relay for attached clients. Where no output can be relayed, their input is accepted all the same.
void ContainerProcess::relay() {
  if (relay_ && !relay_ready_) return;
  if (relay_) return console_->on_output_ready();
  std::array<int, 2> ends = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    return console_->on_output_ready();
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  if (!supervisor_->send_order(SupervisorOrder::kListen, theirs.get())) return console_->on_output_ready();
  relay_ = std::move(ours);
  relay_ready_ = false;
  read_relay();
}

void ContainerProcess::read_relay() {
  const auto end = [this] {
    if (std::exchange(relay_watched_, false)) loop_.unwatch_fd(relay_.get());
    relay_.reset();
  };
  if (!relay_) return;
  if (!console_->has_listeners()) return end();
  std::array<char, kPacketBytesMax> packet;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (int i = 0; i < kPacketsAtOnce; ++i) {
    if (console_->is_held_up()) return pace();
    const ssize_t got = ::recv(relay_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) return end();
    const std::string_view said(packet.data(), static_cast<std::size_t>(got));
    if (said.front() == 0) {
      relay_ready_ = true;
      console_->on_output_ready();
      continue;
    }
    console_->say(said.front() == 2 ? api::Channel::kErr : api::Channel::kOut, said.substr(1));
  }
  if (std::exchange(relay_watched_, true)) return;
  loop_.watch_fd(relay_.get(), POLLIN, [this] { read_relay(); });
}

void ContainerProcess::drain() {
  if (drain_) return;
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return on_drained();
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  if (!supervisor_->send_order(SupervisorOrder::kFinish, theirs.get())) return on_drained();
  drain_ = std::move(ours);
  loop_.watch_fd(drain_.get(), POLLIN, [this] { on_drained(); });
  drain_timer_ = loop_.at(loop_.now().mono + kDrainMax, [this] {
    drain_timer_.reset();
    log_.warning("log of a container not complete yet", {{"container", name()}});
    on_drained();
  });
}

void ContainerProcess::on_drained() {
  if (drain_) loop_.unwatch_fd(drain_.get());
  drain_.reset();
  drained_ = true;
  complete();
}

}  // namespace spillway::host
