// The row of a pod: which of its many states is the one word an operator reads under STATUS.
#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/core/core_tables.h"
#include "base/elapsed.h"

#include <fmt/format.h>

#include <array>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array kColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the pod"},
    TableColumn{"Ready", "string", "", 0, "Containers that are ready, of all"},
    TableColumn{"Status", "string", "", 0, "The state in one word"},
    TableColumn{"Restarts", "string", "", 0, "Restarts of all containers, and when the last one was"},
    TableColumn{"Age", "string", "", 0, "Time since creation"},
    TableColumn{"IP", "string", "", 1, "Address of the pod"},
    TableColumn{"Node", "string", "", 1, "Node the pod is bound to"},
    TableColumn{"Nominated Node", "string", "", 1, "Node that preemption makes room on"},
    TableColumn{"Readiness Gates", "string", "", 1, "Extra conditions that are True, of all"}};

const api::Json::Array& list_at(const api::Json& object, std::initializer_list<std::string_view> path) {
  static const api::Json::Array kEmpty;
  const api::Json* found = object.at(path);
  const api::Json::Array* list = found != nullptr ? found->if_array() : nullptr;
  return list != nullptr ? *list : kEmpty;
}

bool flag(const api::Json& object, std::string_view key) {
  const api::Json* value = object.find(key);
  return value != nullptr && value->if_bool().value_or(false);
}

bool has_condition(const api::Json& pod, std::string_view type, std::string_view status) {
  for (const api::Json& condition : list_at(pod, {"status", "conditions"})) {
    if (condition.string_at({"type"}) == type && condition.string_at({"status"}) == status) return true;
  }
  return false;
}

/// Restarts and the youngest end of an earlier run, over a set of containers.
struct Restarts {
  std::int64_t count = 0;
  std::optional<WallTime> last;

  void add(const api::Json& container) {
    count += count_at(container, {"restartCount"});
    const auto finished = api::parse_time(container.string_at({"lastState", "terminated", "finishedAt"}));
    if (finished && (!last || *last < *finished)) last = *finished;
  }

  std::string text(WallTime now) const {
    if (count == 0 || !last) return fmt::format("{}", count);
    return fmt::format("{} ({} ago)", count, api::human_duration(elapsed(*last, now)));
  }
};

/// "Init:Error", "Init:Signal:9", "Init:ExitCode:1" and their like without the prefix.
std::string end_text(const api::Json& terminated) {
  const std::string_view reason = terminated.string_at({"reason"});
  if (!reason.empty()) return std::string(reason);
  const std::int64_t signal = count_at(terminated, {"signal"});
  if (signal != 0) return fmt::format("Signal:{}", signal);
  return fmt::format("ExitCode:{}", count_at(terminated, {"exitCode"}));
}

class PodSummary {
 public:
  explicit PodSummary(const api::Json& pod) : pod_(pod) {
    const std::string_view reason = pod.string_at({"status", "reason"});
    word_ = std::string(reason.empty() ? pod.string_at({"status", "phase"}) : reason);
    for (const api::Json& condition : list_at(pod, {"status", "conditions"})) {
      if (condition.string_at({"type"}) == "PodScheduled" && condition.string_at({"reason"}) == "SchedulingGated") {
        word_ = "SchedulingGated";
      }
    }
    total_ = list_at(pod, {"spec", "containers"}).size();
    walk_init_containers();
    if (!initializing_ || has_condition(pod, "Initialized", "True")) walk_containers();
    if (pod.at({"metadata", "deletionTimestamp"}) != nullptr) {
      const std::string_view phase = pod.string_at({"status", "phase"});
      if (reason == "NodeLost") {
        word_ = "Unknown";
      } else if (phase != "Succeeded" && phase != "Failed") {
        word_ = "Terminating";
      }
    }
  }

  const std::string& word() const { return word_; }

  std::string ready() const { return fmt::format("{}/{}", ready_, total_); }

  const Restarts& restarts() const { return restarts_; }

 private:
  bool is_sidecar(std::string_view name) const {
    for (const api::Json& container : list_at(pod_, {"spec", "initContainers"})) {
      if (container.string_at({"name"}) == name) return container.string_at({"restartPolicy"}) == "Always";
    }
    return false;
  }

  void walk_init_containers() {
    const api::Json::Array& declared = list_at(pod_, {"spec", "initContainers"});
    for (const api::Json& container : declared) {
      if (container.string_at({"restartPolicy"}) == "Always") ++total_;
    }
    std::size_t index = 0;
    for (const api::Json& status : list_at(pod_, {"status", "initContainerStatuses"})) {
      const std::size_t here = index++;
      restarts_.add(status);
      const bool sidecar = is_sidecar(status.string_at({"name"}));
      if (sidecar) sidecar_restarts_.add(status);
      const api::Json* terminated = status.at({"state", "terminated"});
      if (terminated != nullptr && count_at(*terminated, {"exitCode"}) == 0) continue;
      if (sidecar && flag(status, "started")) {
        if (flag(status, "ready")) ++ready_;
        continue;
      }
      const std::string_view waiting = status.string_at({"state", "waiting", "reason"});
      if (terminated != nullptr) {
        word_ = "Init:" + end_text(*terminated);
      } else if (!waiting.empty() && waiting != "PodInitializing") {
        word_ = "Init:" + std::string(waiting);
      } else {
        word_ = fmt::format("Init:{}/{}", here, declared.size());
      }
      initializing_ = true;
      break;
    }
  }

  void walk_containers() {
    restarts_ = sidecar_restarts_;
    bool any_running = false;
    const api::Json::Array& statuses = list_at(pod_, {"status", "containerStatuses"});
    for (auto status = statuses.rbegin(); status != statuses.rend(); ++status) {
      restarts_.add(*status);
      const std::string_view waiting = status->string_at({"state", "waiting", "reason"});
      const api::Json* terminated = status->at({"state", "terminated"});
      if (!waiting.empty()) {
        word_ = std::string(waiting);
      } else if (terminated != nullptr) {
        word_ = end_text(*terminated);
      } else if (flag(*status, "ready") && status->at({"state", "running"}) != nullptr) {
        any_running = true;
        ++ready_;
      }
    }
    if (word_ == "Completed" && any_running) word_ = has_condition(pod_, "Ready", "True") ? "Running" : "NotReady";
  }

  const api::Json& pod_;
  std::string word_;
  std::size_t total_ = 0;
  std::int64_t ready_ = 0;
  bool initializing_ = false;
  Restarts restarts_;
  Restarts sidecar_restarts_;
};

std::string readiness_gates(const api::Json& pod) {
  const api::Json::Array& gates = list_at(pod, {"spec", "readinessGates"});
  if (gates.empty()) return std::string(kNone);
  std::size_t open = 0;
  for (const api::Json& gate : gates) {
    if (has_condition(pod, gate.string_at({"conditionType"}), "True")) ++open;
  }
  return fmt::format("{}/{}", open, gates.size());
}

api::Json completed_condition(const api::Json& pod) {
  const std::string_view phase = pod.string_at({"status", "phase"});
  if (phase == "Succeeded") {
    return api::Json::array({api::Json::object({{"type", "Completed"},
                                                {"status", "True"},
                                                {"reason", "Succeeded"},
                                                {"message", "The pod has completed successfully."}})});
  }
  if (phase == "Failed") {
    return api::Json::array({api::Json::object(
        {{"type", "Completed"}, {"status", "True"}, {"reason", "Failed"}, {"message", "The pod failed."}})});
  }
  return nullptr;
}

TableRow pod_row(const api::Json& pod, WallTime now) {
  const PodSummary summary(pod);
  const api::Json::Array& ips = list_at(pod, {"status", "podIPs"});
  const std::string_view ip = ips.empty() ? pod.string_at({"status", "podIP"}) : ips.front().string_at({"ip"});
  return {{pod.string_at({"metadata", "name"}), summary.ready(), summary.word(), summary.restarts().text(now),
           age_of(pod, now), or_else(ip, kNone), or_else(pod.string_at({"spec", "nodeName"}), kNone),
           or_else(pod.string_at({"status", "nominatedNodeName"}), kNone), readiness_gates(pod)},
          completed_condition(pod)};
}

}  // namespace

TableDefinition pod_table() {
  return {kColumns, pod_row};
}

}  // namespace spillway::apiserver::kinds
