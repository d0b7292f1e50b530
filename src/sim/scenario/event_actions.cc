#include "sim/scenario/event_actions.h"

#include "sim/scenario/expectation.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace spillway::sim {
namespace {

using api::Json;

constexpr Duration kDrainRetry = seconds(5);
constexpr int kDrainAttempts = 120;

bool is_of_daemon_set(const api::Pod& pod) {
  const api::OwnerReference* owner = api::controller_of(pod.metadata);
  return owner != nullptr && owner->kind == "DaemonSet";
}

bool has_ended(const api::Pod& pod) {
  return pod.status.phase == "Failed" || pod.status.phase == "Succeeded";
}

}  // namespace

void EventActions::carry_out(const Action& action) {
  std::visit(*this, action);
}

void EventActions::take_back(const Action& action) {
  if (const auto* partition = std::get_if<PartitionNodes>(&action)) {
    (*this)(HealNodes{partition->nodes});
  } else if (const auto* crash = std::get_if<CrashNodes>(&action)) {
    (*this)(RestartNodes{crash->nodes});
  } else if (std::holds_alternative<CrashControllers>(action)) {
    (*this)(RestartControllers{});
  } else if (std::holds_alternative<StopApiServer>(action)) {
    (*this)(StartApiServer{});
  } else if (std::holds_alternative<SlowApiServer>(action)) {
    cluster_.network().set_faults(faults_);
  } else if (const auto* drain = std::get_if<DrainNodes>(&action)) {
    (*this)(UncordonNodes{drain->nodes});
  } else if (std::holds_alternative<MuteWatch>(action)) {
    (*this)(MuteWatch{});
  } else if (const auto* memory = std::get_if<UseMemory>(&action)) {
    for (const api::PodKey& key : pods_of(memory->pods)) {
      const api::Pod& pod = cluster_.world().pods().at(key);
      const auto before = used_before_.find(pod.metadata.uid);
      SimHost* const machine = machine_of(pod.spec.node_name);
      if (before != used_before_.end() && machine != nullptr) {
        machine->use_memory(pod.metadata.uid, before->second, Bytes{0});
      }
    }
  }
}

void EventActions::operator()(const PartitionNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) cluster_.partition_node(node, action.cut);
}

void EventActions::operator()(const HealNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) cluster_.heal_node(node);
}

void EventActions::operator()(const CrashNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) cluster_.crash_node(node);
}

void EventActions::operator()(const RestartNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) cluster_.restart_node(node);
}

void EventActions::operator()(const RollingReboot& action) {
  Duration begins{};
  for (const std::size_t node : nodes_of(action.nodes)) {
    cluster_.time().after(begins, [this, node] { cluster_.crash_node(node); });
    cluster_.time().after(begins + action.away, [this, node] { cluster_.restart_node(node); });
    begins += action.interval;
  }
}

void EventActions::operator()(const CrashControllers&) {
  cluster_.crash_controllers();
}

void EventActions::operator()(const RestartControllers&) {
  cluster_.restart_controllers();
}

void EventActions::operator()(const StopApiServer&) {
  cluster_.crash_server();
}

void EventActions::operator()(const StartApiServer&) {
  cluster_.restart_server();
}

void EventActions::operator()(const SlowApiServer& action) {
  NetworkFaults slow = faults_;
  slow.latency_min = action.latency / 2;
  slow.latency_max = action.latency;
  cluster_.network().set_faults(slow);
}

void EventActions::operator()(const UseMemory& action) {
  for (const api::PodKey& key : pods_of(action.pods)) {
    const api::Pod& pod = cluster_.world().pods().at(key);
    SimHost* const machine = machine_of(pod.spec.node_name);
    if (machine == nullptr) continue;
    const Bytes before = machine->usage_of_pod(pod.metadata.uid);
    used_before_.insert_or_assign(pod.metadata.uid, before);
    Bytes rate = action.rate_per_second;
    if (action.over > Duration::zero()) {
      const double span = std::chrono::duration<double>(action.over).count();
      const auto grows = static_cast<double>((action.to - before).count());
      rate = Bytes{std::max<std::int64_t>(static_cast<std::int64_t>(grows / span), 0)};
    }
    machine->use_memory(pod.metadata.uid, action.to, rate);
  }
}

void EventActions::operator()(const DrainNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) {
    set_schedulable(node, false);
    evict_from(node, kDrainAttempts);
  }
}

void EventActions::operator()(const UncordonNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) set_schedulable(node, true);
}

void EventActions::operator()(const ScaleReplicaSet& action) {
  cluster_.patch(fmt::format("/apis/apps/v1/namespaces/{}/replicasets/{}", action.ns, action.name),
                 Json::object({{"spec", Json::object({{"replicas", action.replicas}})}}));
}

void EventActions::operator()(const JumpClock& action) {
  cluster_.time().jump_wall(action.by);
}

void EventActions::operator()(const MuteWatch& action) {
  if (action.path.empty()) {
    cluster_.network().unmute();
  } else {
    cluster_.network().mute("controller", action.path);
  }
}

std::vector<api::PodKey> EventActions::pods_of(const PodChoice& choice) const {
  std::vector<api::PodKey> keys;
  for (const auto& [key, pod] : cluster_.world().pods()) {
    if (choice.first && keys.size() == *choice.first) break;
    if (pod.spec.node_name.empty() || has_ended(pod) || !matches_glob(choice.pods, key.text())) continue;
    if (choice.label) {
      const auto label = pod.metadata.labels.find(choice.label->first);
      if (label == pod.metadata.labels.end() || label->second != choice.label->second) continue;
    }
    keys.push_back(key);
  }
  return keys;
}

SimHost* EventActions::machine_of(const std::string& node) {
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    if (machines_[i].name == node) return cluster_.machine(i);
  }
  return nullptr;
}

void EventActions::set_schedulable(std::size_t node, bool schedulable) {
  cluster_.patch(fmt::format("/api/v1/nodes/{}", machines_[node].name),
                 Json::object({{"spec", Json::object({{"unschedulable", !schedulable}})}}));
}

void EventActions::evict_from(std::size_t node, int attempts) {
  bool left = false;
  for (const auto& [key, pod] : cluster_.world().pods()) {
    if (pod.spec.node_name != machines_[node].name || has_ended(pod) || is_of_daemon_set(pod)) continue;
    left = true;
    if (pod.metadata.deletion_timestamp) continue;
    const Json metadata = Json::object({{"name", key.name}, {"namespace", key.ns}});
    cluster_.create(fmt::format("/api/v1/namespaces/{}/pods/{}/eviction", key.ns, key.name),
                    Json::object({{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", metadata}}));
  }
  if (!left || attempts == 0) return;
  cluster_.time().after(kDrainRetry, [this, node, attempts] { evict_from(node, attempts - 1); });
}

}  // namespace spillway::sim
