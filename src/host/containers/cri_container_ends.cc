#include "host/containers/cri_container_ends.h"

#include "host/cgroup/cgroup_kill.h"
#include "host/containers/cri_pod_ends.h"
#include "host/containers/cri_sandboxes.h"
#include "host/containers/log_folders.h"
#include "host/pods/termination_message.h"

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

using api::Json;

constexpr Duration kInspectFirst = milliseconds(5);
constexpr Duration kInspectMax = milliseconds(500);
constexpr std::int64_t kExited = 2;  // ContainerState

WallTime time_of(std::int64_t nanos) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(nanoseconds(nanos)));
}

std::int64_t whole_seconds(Duration grace) {
  return std::chrono::ceil<std::chrono::seconds>(grace).count();
}

}  // namespace

CriContainerEnds::~CriContainerEnds() {
  for (auto& [uid, pod] : pods_.all())
    for (auto& [name, container] : pod.containers) unwatch(container);
}

void CriContainerEnds::watch(const std::string& uid, const std::string& name) {
  const CriContainer& container = *pods_.find_container(uid, name);
  if (!container.handle) return inspect(uid, name);
  host_.loop.watch_fd(container.handle->pidfd.get(), POLLIN, [this, uid, name] {
    CriContainer* ended = pods_.find_container(uid, name);
    if (ended == nullptr) return;
    host_.loop.unwatch_fd(ended->handle->pidfd.get());
    ended->handle->running = false;
    inspect(uid, name);
  });
}

void CriContainerEnds::unwatch(CriContainer& container) {
  if (container.handle) host_.loop.unwatch_fd(container.handle->pidfd.get());
}

void CriContainerEnds::inspect(const std::string& uid, const std::string& name) {
  inspect_again(uid, name, kInspectFirst);
}

void CriContainerEnds::inspect_all(const std::string& uid) {
  std::vector<std::string> names;
  for (const auto& [name, container] : pods_.find(uid)->containers) names.push_back(name);
  for (const std::string& name : names) inspect(uid, name);
}

/// Queries the runtime until it has seen the end as well; after the bound, lists continue with containers that are not
/// seen ended.
void CriContainerEnds::inspect_again(const std::string& uid, const std::string& name, Duration wait) {
  CriContainer* container = pods_.find_container(uid, name);
  if (container == nullptr || !container->running || container->inspecting) return;
  container->inspecting = true;
  host_.calls.call("ContainerStatus", Json::object({{"container_id", container->id}}), kRuntimeCallMax,
                   [this, uid, name, id = container->id, wait](const Result<Json>& answer) {
                     on_status(uid, name, id, wait, answer);
                   });
}

void CriContainerEnds::on_status(const std::string& uid, const std::string& name, const std::string& id, Duration wait,
                                 const Result<Json>& answer) {
  CriContainer* container = pods_.find_container(uid, name, id);
  if (container == nullptr) return;
  container->inspecting = false;
  const Json* status = answer ? answer->find("status") : nullptr;
  if (status != nullptr && number_in(*status, {"state"}) >= kExited) return on_ended(uid, name, *status);
  if (!answer && answer.error().code == ErrorCode::kNotFound) return on_ended(uid, name, Json::object());
  if (!answer) records_.on_inspected(uid, false);
  if (wait > kInspectMax) return;
  host_.loop.at(host_.loop.now().mono + wait,
                alive_.guard([this, uid, name, wait] { inspect_again(uid, name, wait * 2); }));
}

void CriContainerEnds::on_ended(const std::string& uid, const std::string& name, const Json& status) {
  CriPod& pod = *pods_.find(uid);
  CriContainer& container = pod.containers.at(name);
  unwatch(container);
  agent::ContainerExited event = exit_of(pod, name, status);
  pod.ended[{name, container.attempt}] = container.id;
  pod.containers.erase(name);
  pods_.change_target(pod);
  pod.unreported_ends.push_back(std::move(event));
  if (pod.stopping || pod.sandbox.empty()) {
    report(pod);
    pod_ends_.pursue(uid);
    return;
  }
  // Containers that ended with their sandbox must not restart in it: the loss of the sandbox is reported first.
  sandboxes_.check(pod, [this, uid] {
    if (CriPod* again = pods_.find(uid)) report(*again);
  });
}

/// `status`: without a time of the end if the runtime does not have the container any more. The last bytes of the
/// termination message come after those that the runtime reports.
agent::ContainerExited CriContainerEnds::exit_of(const CriPod& pod, const std::string& name, const Json& status) const {
  const CriContainer& container = pod.containers.at(name);
  const bool lost = status.find("finished_at") == nullptr;
  agent::ContainerExited event{
      .uid = pod.command.uid,
      .name = name,
      .attempt = container.attempt,
      .exit_code = static_cast<std::int32_t>(number_in(status, {"exit_code"})),
      .signal = 0,
      .oom_killed = status.string_at({"reason"}) == "OOMKilled",
      .started_at = container.started_at,
      .finished_at = lost ? host_.loop.now().wall : time_of(number_in(status, {"finished_at"})),
      .container_id = pods_.container_id(container.id),
      .reason = std::string(status.string_at({"reason"})),
      .message = read_termination_message({.message_file = container.termination_log,
                                           .log = log_in(pod.logs, name, container.attempt),
                                           .from_logs = container.message_from_logs,
                                           .exit_code = static_cast<std::int32_t>(number_in(status, {"exit_code"})),
                                           .reason = std::string(status.string_at({"reason"})),
                                           .message = std::string(status.string_at({"message"}))})};
  if (lost) {
    event.exit_code = 137;
    event.reason = "ContainerStatusUnknown";
    event.message = "The container could not be located when the pod was terminated";
  }
  return event;
}

void CriContainerEnds::report(CriPod& pod) {
  for (agent::ContainerExited& each : std::exchange(pod.unreported_ends, {})) host_.events.emit(std::move(each));
}

void CriContainerEnds::stop(const agent::StopContainer& command) {
  const CriContainer* container = pods_.find_container(command.uid, command.name);
  if (container == nullptr) return;
  ask_to_stop(command.uid, command.name, container->id, command.grace);
  host_.loop.at(
      host_.loop.now().mono + command.grace + kRuntimeSlack,
      alive_.guard([this, uid = command.uid, name = command.name, id = container->id] { kill_late(uid, name, id); }));
}

void CriContainerEnds::stop_all(const std::string& uid, Duration grace) {
  for (const auto& [name, container] : pods_.find(uid)->containers)
    if (container.running) ask_to_stop(uid, name, container.id, grace);
}

void CriContainerEnds::ask_to_stop(const std::string& uid, const std::string& name, const std::string& id,
                                   Duration grace) {
  host_.calls.call("StopContainer", Json::object({{"container_id", id}, {"timeout", whole_seconds(grace)}}),
                   grace + kRuntimeCallMax, [this, uid, name](const Result<Json>& /*stopped*/) { inspect(uid, name); });
}

/// A runtime that does nothing is not waited for.
void CriContainerEnds::kill_late(const std::string& uid, const std::string& name, const std::string& id) {
  const CriContainer* container = pods_.find_container(uid, name, id);
  if (container == nullptr || !container->running || !container->cgroup) return;
  const Outcome killed = kill_all(container->cgroup);
  host_.log.warning("the container runtime did not stop a container: its cgroup is killed",
                    {{"pod", pods_.find(uid)->command.pod.text()},
                     {"container", name},
                     {"error", killed ? std::string() : killed.error().text()}});
}

}  // namespace spillway::host
