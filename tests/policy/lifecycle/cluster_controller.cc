// The controller's side of the model: the steps of a pass in upstream's order, with upstream's failures.
#include "policy/lifecycle/cluster_model.h"
#include "policy/lifecycle/condition_taints.h"
#include "policy/lifecycle/legacy_eviction.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::lifecycle {
namespace {

constexpr int kUpdateTries = 6;
constexpr int kPodUpdateTries = 4;

}  // namespace

bool ClusterModel::fails(const std::string& verb, const std::string& name) {
  const auto it = failures_.find({verb, name});
  if (it == failures_.end() || it->second == 0) return false;
  --it->second;
  return true;
}

std::vector<std::string> ClusterModel::pods_of(const std::string& node) const {
  std::vector<std::string> keys;
  for (const auto& [key, pod] : pods_) {
    if (pod.spec.node_name == node) keys.push_back(key);
  }
  return keys;
}

/// The taints of this controller that every node carries: a pass records only what it changed in the end.
ClusterModel::TaintSet ClusterModel::taints_now() const {
  TaintSet result;
  for (const auto& [name, machine] : machines_) add_taints(machine, result);
  return result;
}

void ClusterModel::add_taints(const Machine& machine, TaintSet& taints) const {
  const std::string& name = machine.node.metadata.name;
  if (!machine.exists || is_background(name) || machine.node.spec.taints.empty()) return;
  for (const std::string_view key : {profile_.not_ready_taint, profile_.unreachable_taint}) {
    if (has_taint(machine.node.spec.taints, key, api::kNoExecute)) taints.emplace(name, key);
  }
}

void ClusterModel::record_taints(const TaintSet& before, const TaintSet& after) {
  for (const auto& each : after) {
    if (!before.contains(each)) act({"taint+", each.first, each.second});
  }
  for (const auto& each : before) {
    if (!after.contains(each) && machines_.at(each.first).exists) act({"taint-", each.first, each.second});
  }
}

/// The node as the API has it now.
std::shared_ptr<const api::Node> ClusterModel::read(Machine& machine) {
  if (!machine.copy) machine.copy = std::make_shared<const api::Node>(machine.node);
  return machine.copy;
}

/// What the controller's caches would tell it: the node or its lease is another one than in the last pass.
void ClusterModel::tell(Machine& machine) {
  const std::shared_ptr<const api::Node> node = machine.exists ? read(machine) : nullptr;
  if (node != machine.told || machine.lease != machine.told_lease) monitor_->touch(machine.node.metadata.name);
  machine.told = node;
  machine.told_lease = machine.lease;
}

void ClusterModel::monitor_pass() {
  const auto taints_before = taints_now();
  const auto queued_before = queued();
  std::map<std::string, std::shared_ptr<const api::Node>, std::less<>> copies;
  for (auto& [name, machine] : machines_) {
    if (machine.exists) copies.emplace(name, read(machine));
    tell(machine);
  }

  const std::string_view controller = original_ ? "NodeController" : "Controller";
  const auto find = [&copies](std::string_view name) {
    const auto copy = copies.find(name);
    return copy == copies.end() ? nullptr : copy->second.get();
  };
  const NodeMonitor::Opening opening = monitor_->begin_pass(find, now());
  for (const api::Node* node : opening.added) {
    const std::string& name = node->metadata.name;
    event("Node", name, "Normal", "RegisteredNode",
          fmt::format("Node {} event: Registered Node {} in {}", name, name, controller));
  }
  for (const std::string& name : opening.deleted) {
    event("Node", name, "Normal", "RemovingNode",
          fmt::format("Node {} event: Removing Node {} from {}", name, name, controller));
  }
  for (const api::Node* node : opening.untaint) {
    if (untaint(*node)) monitor_->dequeue(*node);
  }
  for (const api::Node* node : opening.due) process_node(copies.at(node->metadata.name));
  if (monitor_->finish_pass(now()).sweep) {
    for (const auto& [name, node] : copies) {
      if (untaint(*node)) monitor_->dequeue(*node);
    }
  }

  record_taints(taints_before, taints_now());
  const auto queued_after = queued();
  const auto record = [&](const char* kind, const auto& more, const auto& less) {
    for (const auto& [zone, names] : more) {
      const auto other = less.find(zone);
      for (const std::string& name : names) {
        const bool new_here = other == less.end() || !other->second.contains(name);
        if (new_here && !is_background(name)) act({kind, zone, name});
      }
    }
  };
  record("enqueue", queued_after, queued_before);
  record("dequeue", queued_before, queued_after);
  record_zones();
  record_health();
}

void ClusterModel::process_node(std::shared_ptr<const api::Node> node) {
  Assessment assessment;
  if (!update_health(node, assessment)) return;
  monitor_->count(*node, assessment);
  if (assessment.current) {
    if (!original_ && fails("list_pods", node->metadata.name)) {
      monitor_->pods_unknown(*node, assessment);
      return;
    }
    if (profile_.mode == EvictionMode::kTaint) {
      taint_step(*node, assessment);
    } else {
      evict_step(*node, assessment);
    }
  }
  mark_step(*node, assessment);
  if (profile_.cloud_check && cloud_) cloud_step(*node, assessment);
}

bool ClusterModel::update_health(std::shared_ptr<const api::Node>& node, Assessment& assessment) {
  const std::string& name = node->metadata.name;
  Machine& machine = machines_.at(name);
  for (int i = 0; i < kUpdateTries; ++i) {
    assessment = monitor_->assess(*node, machine.lease ? &*machine.lease : nullptr, now());
    if (!assessment.write) return true;
    const bool refused = fails("update_node_status", name) || !machine.exists;
    if (!refused) {
      machine.node.status.conditions = *assessment.write;
      machine.copy.reset();
      monitor_->confirm_written(machine.node, assessment, now());
      if (!is_background(name)) {
        api::Json::Array action{"status", name};
        if (full_) action.push_back(conditions_of(machine.node));
        act(std::move(action));
      }
    }
    if (!machine.exists) return false;
    node = read(machine);
    if (!refused) return true;
  }
  return false;
}

void ClusterModel::taint_step(const api::Node& node, const Assessment& assessment) {
  switch (monitor_->decide_taint(node, assessment, now())) {
    case TaintAction::kRemoveBoth:
      if (untaint(node)) monitor_->dequeue(node);
      break;
    case TaintAction::kBecomeNotReady:
      swap_taint(node, profile_.not_ready_taint, profile_.unreachable_taint);
      break;
    case TaintAction::kBecomeUnreachable:
      swap_taint(node, profile_.unreachable_taint, profile_.not_ready_taint);
      break;
    case TaintAction::kNone:
      break;
  }
}

void ClusterModel::evict_step(const api::Node& node, const Assessment& assessment) {
  if (monitor_->decide_eviction(node, assessment, now()) == NodeMonitor::PodEviction::kDeleteAgain) {
    delete_pods(pods_of(node.metadata.name), node.metadata.name);
  }
}

void ClusterModel::mark_step(const api::Node& node, const Assessment& assessment) {
  const std::string& name = node.metadata.name;
  const NodeMonitor::PodMarking marking = monitor_->decide_marking(node, assessment);
  if (marking.node_event) {
    event("Node", name, "Normal", "NodeNotReady", fmt::format("Node {} status is now: NodeNotReady", name));
  }
  if (!marking.mark) return;
  if (profile_.checks_kubelet_version) {
    if (is_outdated_kubelet(node.status.node_info.kubelet_version, kKubeletMarksPods)) return;
    if (fails("list_pods", name)) return;
  }
  monitor_->pods_marked(name, mark_pods(pods_of(name), name));
}

bool ClusterModel::mark_pods(const std::vector<std::string>& pods, const std::string& node) {
  bool all = true;
  for (const std::string& key : pods) all = mark_pod(api::Pod(pods_.at(key)), node) && all;
  return all;
}

/// `seen`: the pod as the controller read it; if it has changed since, the write conflicts.
bool ClusterModel::mark_pod(const api::Pod& seen, const std::string& node) {
  const std::string key = seen.key().text();
  if (seen.spec.node_name != node) return true;
  if (plan_pod_not_ready(seen, profile_.mark_pods_skips_false) == PodReadyStep::kSkip) return true;
  if (profile_.mark_pods_events) event("Pod", key, "Warning", "NodeNotReady", "Node is not ready");
  if (fails("update_pod_status", key) || fails("conflict_pod_status", key)) return false;
  api::Pod& pod = pods_.at(key);
  if (pod != seen) return false;
  for (api::PodCondition& condition : pod.status.conditions) {
    if (condition.type != "Ready" || condition.status == "False") continue;
    condition.status = "False";
    act({"pod_ready", key, "False"});
  }
  force_outdated(key);
  return true;
}

void ClusterModel::cloud_step(const api::Node& node, const Assessment& assessment) {
  const std::string& name = node.metadata.name;
  if (!assessment.current || *assessment.current == Readiness::kTrue) return;
  if (fails("cloud_exists", name) || !cloud_gone_.contains(name)) return;
  event(
      "Node", name, "Normal", "DeletingNode",
      fmt::format("Node {} event: Deleting Node {} because it's not present according to cloud provider", name, name));
  machines_.at(name).exists = false;
  machines_.at(name).lease.reset();
  act({"node_delete", name});
}

bool ClusterModel::remove_taint(const api::Node& seen, std::string_view key) {
  const std::string& name = seen.metadata.name;
  if (!has_taint(seen.spec.taints, key, api::kNoExecute)) return true;
  if (fails("patch_node", name)) return false;
  Machine& machine = machines_.at(name);
  if (!machine.exists) return false;
  machine.copy.reset();
  erase_taint(machine.node.spec.taints, {std::string(key), {}, std::string(api::kNoExecute), {}});
  return true;
}

bool ClusterModel::untaint(const api::Node& seen) {
  return remove_taint(seen, profile_.unreachable_taint) && remove_taint(seen, profile_.not_ready_taint);
}

bool ClusterModel::swap_taint(const api::Node& seen, std::string_view add, std::string_view remove) {
  const std::string& name = seen.metadata.name;
  Machine& machine = machines_.at(name);
  if (fails("patch_node", name) || !machine.exists) return false;
  machine.copy.reset();
  put_taint(machine.node.spec.taints,
            {std::string(add), {}, std::string(api::kNoExecute), std::chrono::floor<seconds>(now().wall)});
  return remove_taint(seen, remove);
}

void ClusterModel::queue_pass() {
  monitor_->process_queues(now(), [this](const std::string& zone, const RateLimitedQueue::Entry& entry) {
    const auto machine = machines_.find(entry.name);
    TaintSet before;
    TaintSet after;
    if (machine != machines_.end()) add_taints(machine->second, before);
    const NodeMonitor::Answer answer =
        profile_.mode == EvictionMode::kTaint ? taint_entry(entry.name) : evict_entry(entry.name);
    if (machine != machines_.end()) add_taints(machine->second, after);
    record_taints(before, after);
    if (answer.handled == NodeMonitor::Handled::kDone && !is_background(entry.name)) {
      act({"processed", zone, entry.name});
    }
    return answer;
  });
}

NodeMonitor::Answer ClusterModel::taint_entry(const std::string& name) {
  const NodeMonitor::Answer retry_soon{NodeMonitor::Handled::kRetry, milliseconds(50)};
  const NodeMonitor::Answer retry_next{NodeMonitor::Handled::kRetry, Duration::zero()};
  const auto it = machines_.find(name);
  if (it == machines_.end() || !it->second.exists) return {};
  const std::shared_ptr<const api::Node> node = read(it->second);
  const auto readiness = readiness_of(*node);
  if (!readiness) return retry_soon;
  if (*readiness == Readiness::kTrue) return {};
  const bool swapped = *readiness == Readiness::kFalse
                           ? swap_taint(*node, profile_.not_ready_taint, profile_.unreachable_taint)
                           : swap_taint(*node, profile_.unreachable_taint, profile_.not_ready_taint);
  return swapped ? NodeMonitor::Answer{} : retry_next;
}

NodeMonitor::Answer ClusterModel::evict_entry(const std::string& name) {
  const NodeMonitor::Answer retry{NodeMonitor::Handled::kRetry, Duration::zero()};
  if (fails("list_pods", name) || !delete_pods(pods_of(name), name)) return retry;
  monitor_->evicted(name);
  return {};
}

/// S8.2. False: the node is to be tried again.
bool ClusterModel::delete_pods(const std::vector<std::string>& pods, const std::string& node) {
  std::vector<const api::DaemonSet*> daemon_sets;
  for (const api::DaemonSet& set : daemon_sets_) daemon_sets.push_back(&set);
  if (!pods.empty()) {
    event("Node", node, "Normal", "DeletingAllPods",
          fmt::format("Node {} event: Deleting all Pods from Node {}.", node, node));
  }
  bool all = true;
  for (const std::string& key : pods) {
    api::Pod& pod = pods_.at(key);
    const PodEvictionStep step = plan_pod_eviction(pod, node, daemon_sets);
    if (step.set_node_lost) {
      if (fails("conflict_pod_status", key)) {
        all = false;
        continue;
      }
      if (!fails("update_pod_status", key)) {
        pod.status.reason = "NodeLost";
        pod.status.message = node_lost_message(node, pod.metadata.name);
        act({"pod_reason", key, pod.status.reason, pod.status.message});
        force_outdated(key);
        if (!pods_.contains(key)) continue;
      }
    }
    if (!step.delete_pod) continue;
    event("Pod", key, "Normal", "NodeControllerEviction",
          fmt::format("Marking for deletion Pod {} from Node {}", pod.metadata.name, node));
    if (!delete_pod(key, false)) return false;
  }
  return all;
}

bool ClusterModel::delete_pod(const std::string& key, bool force) {
  if (fails("delete_pod", key)) return false;
  api::Json::Array action{"pod_delete", key};
  if (force) action.push_back(0);
  act(std::move(action));
  if (force) {
    pods_.erase(key);
    return true;
  }
  api::Pod& pod = pods_.at(key);
  if (!pod.metadata.deletion_timestamp) {
    pod.metadata.deletion_timestamp = now().wall;
    pod.metadata.deletion_grace_period_seconds = 30;
    force_outdated(key);
  }
  return true;
}

/// 1.7: a terminating pod on a kubelet that cannot delete gracefully is deleted by force.
void ClusterModel::force_outdated(const std::string& key) {
  if (!profile_.checks_kubelet_version) return;
  const api::Pod& pod = pods_.at(key);
  if (!pod.metadata.deletion_timestamp) return;
  const auto machine = machines_.find(pod.spec.node_name);
  if (machine == machines_.end() || !machine->second.exists) return;
  if (is_outdated_kubelet(machine->second.node.status.node_info.kubelet_version, kKubeletDeletesGracefully)) {
    delete_pod(key, true);
  }
}

void ClusterModel::on_pod_added(const std::string& key) {
  force_outdated(key);
  if (!profile_.pod_updates || !pods_.contains(key)) return;
  const std::string node_name = pods_.at(key).spec.node_name;
  for (int i = 0; i < kPodUpdateTries; ++i) {
    const std::optional<HealthRecord> record = monitor_->find_record(node_name);
    const auto machine = machines_.find(node_name);
    if (!record || !record->ready || machine == machines_.end()) return;
    if (!machine->second.exists) continue;
    const api::Pod seen = pods_.at(key);
    if (profile_.mode == EvictionMode::kLegacy) {
      const auto eviction = monitor_->decide_eviction_of_new_pod(machine->second.node, now());
      if (eviction == NodeMonitor::PodEviction::kDeleteAgain && !delete_pods({key}, node_name)) continue;
    }
    if (record->ready->status == Readiness::kTrue || mark_pod(seen, node_name)) return;
  }
}

}  // namespace spillway::lifecycle
