#include "host/process/container_supervisors.h"

#include "agent/contract/container_end.h"
#include "host/kernel/pidfd.h"
#include "host/process/kept_records.h"
#include "host/supervisor/supervisor_program.h"

#include <signal.h>

#include <algorithm>
#include <string>
#include <utility>

namespace spillway::host {

Outcome ContainerSupervisors::open() {
  SPILLWAY_TRY(program, open_supervisor_program());
  program_ = std::move(program);
  SPILLWAY_TRY(cgroup, host_.slice.slice().create_child(std::string(kSupervisorsFolder)));
  cgroup_ = std::move(cgroup);
  return {};
}

std::optional<Supervision> ContainerSupervisors::supervision(int volumes) const {
  if (!program_) return std::nullopt;
  return Supervision{program_.get(), &cgroup_, volumes};
}

std::vector<pid_t> ContainerSupervisors::pids() const {
  return cgroup_ ? cgroup_.pids().value_or(std::vector<pid_t>()) : std::vector<pid_t>();
}

/// The end is recorded before the supervisor releases the process: an agent that starts between the two finds it
/// recorded.
void ContainerSupervisors::record_end(ProcessPod& pod, ContainerProcess& container,
                                      const agent::ContainerExited& event) const {
  std::optional<Supervisor> supervisor = container.release_supervisor();
  if (!supervisor) return;
  agent::FoundContainer end;
  end.name = event.name;
  end.attempt = event.attempt;
  end.image = container.command().image;
  end.started_at = event.started_at;
  end.ended = agent::terminated_by(event);
  pod.ends.insert_or_assign(event.name, std::move(end));
  const Outcome written = write_record(pod.ends_path(), ends_text(pod.ends));
  if (!written) host_.log.warning("end of a container not written down", {{"error", written.error().text()}});
  static_cast<void>(supervisor->send_order(SupervisorOrder::kCollect));
  const bool others = std::ranges::any_of(pod.containers, [&](const auto& each) {
    return each.first != event.name && each.second->supervisor() != nullptr;
  });
  if (pod.stopping || others) return quit(*std::move(supervisor));
  hold(pod, *std::move(supervisor));
}

void ContainerSupervisors::hold(ProcessPod& pod, Supervisor supervisor) const {
  release_holder(pod);
  pod.holder = std::move(supervisor);
}

void ContainerSupervisors::release_holder(ProcessPod& pod) const {
  if (pod.holder) quit(*std::exchange(pod.holder, std::nullopt));
}

void ContainerSupervisors::clear_strays(const ProcessPods& pods) {
  if (!cgroup_) return;
  std::set<pid_t> known;
  for (const auto& [uid, pod] : pods.all()) {
    if (pod.holder) known.insert(pod.holder->pid());
    for (const auto& each : pod.left) known.insert(each.first.pid());
    for (const auto& [name, container] : pod.containers)
      if (container->supervisor() != nullptr) known.insert(container->supervisor()->pid());
  }
  std::set<pid_t> unknown;
  for (const pid_t pid : pids()) {
    if (known.contains(pid)) continue;
    unknown.insert(pid);
    if (!strays_.contains(pid)) continue;
    host_.log.warning("an unknown supervisor is ended", {{"pid", static_cast<std::int64_t>(pid)}});
    if (const UniqueFd process = try_open_pidfd(pid)) static_cast<void>(try_send_signal(process.get(), SIGKILL));
  }
  strays_ = std::move(unknown);
}

}  // namespace spillway::host
