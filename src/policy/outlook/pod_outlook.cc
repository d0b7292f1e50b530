#include "policy/outlook/pod_outlook.h"

#include "api/object/pod_requests.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::outlook {

namespace {

using policy::Fact;
using policy::Verdict;

constexpr std::array<std::string_view, 6> kImageReasons{"ErrImagePull",        "ImagePullBackOff",
                                                        "InvalidImageName",    "ErrImageNeverPull",
                                                        "RegistryUnavailable", "ImageInspectError"};
constexpr std::array<std::string_view, 6> kStartReasons{"CreateContainerError", "CreateContainerConfigError",
                                                        "RunContainerError",    "PreStartHookError",
                                                        "PostStartHookError",   "StartError"};

bool is_any(std::string_view reason, const auto& reasons) {
  return std::ranges::find(reasons, reason) != reasons.end();
}

/// The last end of the container, of this run or the one before; nullptr: it has never ended.
const api::ContainerState::Terminated* last_end(const api::ContainerStatus& container) {
  if (container.state.terminated) return &*container.state.terminated;
  return container.last_state.terminated ? &*container.last_state.terminated : nullptr;
}

class PodOutlook : OutlookMaker {
 public:
  PodOutlook(const api::Pod& pod, WallTime now, std::span<const api::Pod> neighbours)
      : pod_(pod), neighbours_(neighbours) {
    out_.at = now;
    out_.subject = {std::string(api::Pod::kKind), pod.metadata.ns, pod.metadata.name, pod.metadata.uid};
  }

  std::optional<Outlook> run() {
    if (!pod_.status.reason.empty()) return std::nullopt;
    inspect(pod_.status.init_container_statuses);
    inspect(pod_.status.container_statuses);
    if (out_.remarks.empty()) return std::nullopt;
    name_port_holder();
    out_.parts.push_back(std::move(containers_));
    return std::move(out_);
  }

 private:
  void inspect(const std::vector<api::ContainerStatus>& containers) {
    for (const api::ContainerStatus& container : containers) {
      say(container);
      add_row(container);
    }
  }

  void say(const api::ContainerStatus& container) {
    std::vector<Fact> facts{{"container", container.name}};
    const auto* end = last_end(container);
    const auto& waiting = container.state.waiting;
    if (waiting && (is_any(waiting->reason, kImageReasons) || is_any(waiting->reason, kStartReasons))) {
      facts.push_back({"reason", waiting->reason});
      if (!waiting->message.empty()) facts.push_back({"message", waiting->message});
      if (is_any(waiting->reason, kStartReasons)) return add(Verdict::kWaits, Code::kPodNoStart, std::move(facts));
      facts.push_back({"image", container.image});
      return add(Verdict::kWaits, Code::kPodNoImage, std::move(facts));
    }
    if (end == nullptr || (end->exit_code == 0 && !waiting)) return;
    // A container that runs again is mentioned as long as it is not ready.
    if (container.state.running && container.ready) return;
    if (waiting && waiting->reason != "CrashLoopBackOff") return;
    add_end(facts, container, *end);
    if (end->reason == "OOMKilled") return add(verdict(), Code::kPodOutOfMemory, std::move(facts));
    if (waiting) return add(Verdict::kWaits, Code::kPodCrashes, std::move(facts));
    add(verdict(), Code::kPodContainerFailed, std::move(facts));
  }

  /// Refused for a failed pod, which stays so; in other pods the container is started again.
  Verdict verdict() const { return pod_.status.phase == "Failed" ? Verdict::kRefuses : Verdict::kWaits; }

  void add_end(std::vector<Fact>& facts, const api::ContainerStatus& container,
               const api::ContainerState::Terminated& end) const {
    facts.push_back({"exit_code", std::int64_t{end.exit_code}});
    if (!end.reason.empty()) facts.push_back({"reason", end.reason});
    if (!end.message.empty()) facts.push_back({"message", end.message});
    if (end.finished_at) facts.push_back(time_fact("ended_at", *end.finished_at));
    if (container.restart_count > 0) facts.push_back({"restarts", std::int64_t{container.restart_count}});
    if (const auto limit = memory_limit(container.name)) facts.push_back({"limit_bytes", limit->count()});
  }

  std::optional<Bytes> memory_limit(std::string_view name) const {
    for (const auto* containers : {&pod_.spec.init_containers, &pod_.spec.containers}) {
      const auto found = std::ranges::find(*containers, name, &api::Container::name);
      if (found == containers->end()) continue;
      const api::Quantity* limit = api::limit_in_force(pod_.spec, *found, "memory");
      if (limit != nullptr) return limit->bytes();
    }
    return std::nullopt;
  }

  void add_row(const api::ContainerStatus& container) {
    ++containers_.total;
    if (containers_.rows.size() == kRowsMax) return;
    Row row{.name = container.name, .state = state_text(container), .facts = {}};
    row.facts.push_back({"restarts", std::int64_t{container.restart_count}});
    if (const auto* end = last_end(container)) {
      row.facts.push_back({"last_exit_code", std::int64_t{end->exit_code}});
      if (!end->reason.empty()) row.facts.push_back({"last_reason", end->reason});
    }
    containers_.rows.push_back(std::move(row));
  }

  static std::string state_text(const api::ContainerStatus& container) {
    if (container.state.waiting) {
      return container.state.waiting->reason.empty() ? "waiting" : "waiting: " + container.state.waiting->reason;
    }
    if (container.state.terminated) return "ended";
    if (container.state.running) return container.ready ? "ready" : "running, not ready";
    return "waiting";
  }

  /// Pods with the address of their node share its network, and there one program listens on a port.
  static bool uses_network_of_node(const api::Pod& pod) {
    return !pod.status.pod_ip.empty() && pod.status.pod_ip == pod.status.host_ip;
  }

  /// A container of `pod` that runs and is ready has the port.
  static bool holds(const api::Pod& pod, const api::ContainerPort& port) {
    return std::ranges::any_of(pod.spec.containers, [&](const api::Container& container) {
      const auto status = std::ranges::find(pod.status.container_statuses, container.name, &api::ContainerStatus::name);
      const auto is_it = [&](const api::ContainerPort& each) {
        return each.container_port == port.container_port && each.protocol == port.protocol;
      };
      return status != pod.status.container_statuses.end() && status->ready &&
             std::ranges::any_of(container.ports, is_it);
    });
  }

  void name_port_holder() {
    const bool fails =
        find_remark(out_, Code::kPodCrashes) != nullptr || find_remark(out_, Code::kPodContainerFailed) != nullptr;
    if (!fails || !uses_network_of_node(pod_)) return;
    for (const api::Container& container : pod_.spec.containers) {
      for (const api::ContainerPort& port : container.ports) {
        for (const api::Pod& other : neighbours_) {
          if (other.metadata.uid == pod_.metadata.uid || other.spec.node_name != pod_.spec.node_name) continue;
          if (!uses_network_of_node(other) || !holds(other, port)) continue;
          return add(Code::kPodPortTaken, {{"port", std::int64_t{port.container_port}},
                                           {"node", pod_.spec.node_name},
                                           {"pod", other.metadata.ns + "/" + other.metadata.name}});
        }
      }
    }
  }

  const api::Pod& pod_;
  std::span<const api::Pod> neighbours_;
  Part containers_{.name = "containers", .rows = {}};
};

}  // namespace

std::optional<Outlook> explain_containers(const api::Pod& pod, WallTime now, std::span<const api::Pod> neighbours) {
  return PodOutlook(pod, now, neighbours).run();
}

std::optional<Outlook> explain_start(const api::Pod& pod, const api::Event& event, WallTime now) {
  constexpr auto kObstacles = std::to_array<std::string_view>(
      {"FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox"});
  const bool waits = !pod.spec.node_name.empty() && pod.status.phase == "Pending" && !pod.spec.containers.empty();
  if (!waits || !is_any(event.reason, kObstacles)) return std::nullopt;
  return Outlook{.at = now,
                 .subject = {.kind = "Pod", .ns = pod.metadata.ns, .name = pod.metadata.name, .uid = pod.metadata.uid},
                 .verdict = Verdict::kWaits,
                 .remarks = {{Code::kPodNoStart,
                              {{"container", pod.spec.containers.front().name},
                               {"reason", event.reason},
                               {"message", event.message}}}},
                 .parts = {}};
}

}  // namespace spillway::outlook
