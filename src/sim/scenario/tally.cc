#include "sim/scenario/tally.h"

#include "api/object/owner_text.h"
#include "sim/properties/object_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::sim {
namespace {

constexpr std::size_t kUnrecoveredMax = 20;
constexpr std::string_view kDeployments = "/registry/deployments/";

bool is_unplaced(const api::Pod& pod) {
  const api::PodCondition* scheduled = api::find_condition(pod.status.conditions, "PodScheduled");
  return pod.spec.node_name.empty() && scheduled != nullptr && scheduled->status == "False";
}

/// The reason for a pod's deletion, in the product's words.
std::string reason_of_deletion(const api::Pod& pod) {
  const api::PodCondition* target = api::find_condition(pod.status.conditions, "DisruptionTarget");
  return target == nullptr ? std::string() : fmt::format("{}: {}", target->reason, target->message);
}

bool has_finished(const api::Pod& pod) {
  return pod.status.phase == "Failed" || pod.status.phase == "Succeeded";
}

}  // namespace

Tally::Tally(Cluster& cluster) : cluster_(cluster) {
  cluster_.world().listen([this](const store::Change& change, Now) {
    const std::string_view key = change.key;
    const std::string name(key.substr(key.rfind('/') + 1));
    if (key.starts_with("/registry/minions/")) {
      on_node(name);
    } else if (key.starts_with("/registry/pods/")) {
      const std::string_view rest = key.substr(std::string_view("/registry/pods/").size());
      on_pod(std::string(rest.substr(0, rest.find('/'))), name, change.value != nullptr);
    } else if (key.starts_with("/registry/replicasets/")) {
      on_replica_set(std::string(key.substr(std::string_view("/registry/replicasets/").size())));
    } else if (key.starts_with(kDeployments)) {
      on_deployment(std::string(key.substr(kDeployments.size())));
    } else {
      return;
    }
    update_well_since();
  });
}

void Tally::begin() {
  began_ = cluster_.time().now().mono;
  disturbed_at_ = *began_;
  well_since_.reset();
  update_well_since();
}

void Tally::disturb() {
  disturbed_at_ = cluster_.time().now().mono;
  well_since_.reset();
  update_well_since();
}

Duration Tally::since_beginning() const {
  return cluster_.time().now().mono - *began_;
}

void Tally::update_well_since() {
  if (!unwell_.empty()) {
    well_since_.reset();
  } else if (!well_since_) {
    well_since_ = cluster_.time().now().mono;
  }
}

void Tally::happen(Happening happening) {
  if (!began_) return;
  happening.at = since_beginning();
  if (!happening.node.empty()) {
    const auto node = cluster_.world().nodes().find(happening.node);
    if (node != cluster_.world().nodes().end()) happening.zone = zone_of(node->second);
  }
  seen_.happenings.push_back(std::move(happening));
}

void Tally::record(HappeningKind kind, const api::Pod& pod, std::string reason) {
  happen({.kind = kind,
          .object = fmt::format("{}/{}", pod.metadata.ns, pod.metadata.name),
          .node = pod.spec.node_name,
          .zone = {},
          .owner = api::controller_text(pod.metadata),
          .reason = std::move(reason)});
}

void Tally::on_node(const std::string& name) {
  const auto found = cluster_.world().nodes().find(name);
  if (found == cluster_.world().nodes().end()) {
    if (nodes_[name].tainted) --tainted_;
    nodes_.erase(name);
    unwell_.erase("node " + name);
    return;
  }
  const api::Node& node = found->second;
  NodeState& before = nodes_[name];
  const NodeState after{is_ready(node), has_silence_taint(node)};
  const api::NodeCondition* ready = api::find_condition(node.status.conditions, "Ready");
  if (before.ready && !after.ready) {
    const std::string reason = ready == nullptr ? std::string() : fmt::format("{}: {}", ready->reason, ready->message);
    happen({.kind = HappeningKind::kFlip, .object = name, .node = name, .zone = {}, .owner = {}, .reason = reason});
  }
  if (!before.tainted && after.tainted) {
    ++tainted_;
    happen({.kind = HappeningKind::kTaint, .object = name, .node = name, .zone = {}, .owner = {}, .reason = {}});
  }
  if (before.tainted && !after.tainted) --tainted_;
  if (began_) seen_.tainted_nodes_max = std::max(seen_.tainted_nodes_max, tainted_);
  before = after;
  after.ready && !after.tainted ? unwell_.erase("node " + name) : unwell_.insert("node " + name).second;
  if (began_ && ready != nullptr && ready->status == "Unknown" && first_unknown_) std::exchange(first_unknown_, {})();
}

void Tally::on_pod(const std::string& ns, const std::string& name, bool there) {
  const std::string what = fmt::format("pod {}/{}", ns, name);
  const auto found = cluster_.world().pods().find(api::PodKey{ns, name});
  if (!there || found == cluster_.world().pods().end()) {
    unwell_.erase(what);
    return;
  }
  const api::Pod& pod = found->second;
  const std::string& uid = pod.metadata.uid;
  if (pod.status.phase == "Failed" && pod.status.reason == "Evicted" && evicted_.insert(uid).second) {
    record(HappeningKind::kEvicted, pod, pod.status.message);
  }
  if (pod.metadata.deletion_timestamp && deleted_.insert(uid).second) {
    record(HappeningKind::kDeleted, pod, reason_of_deletion(pod));
  }
  if (is_unplaced(pod) && unplaced_.insert(uid).second) {
    record(HappeningKind::kUnplaced, pod, api::find_condition(pod.status.conditions, "PodScheduled")->message);
  }
  for (const api::ContainerStatus& container : pod.status.container_statuses) {
    const auto& ended = container.state.terminated ? container.state.terminated : container.last_state.terminated;
    if (!ended || ended->reason != "OOMKilled") continue;
    const auto number = container.restart_count + (container.state.terminated ? 1 : 0);
    if (killed_.emplace(uid + "/" + container.name, number).second) {
      record(HappeningKind::kOomKill, pod, fmt::format("container {} was killed by the kernel", container.name));
    }
  }
  const bool well = has_finished(pod) || (pod.status.phase == "Running" && !pod.metadata.deletion_timestamp);
  well ? unwell_.erase(what) : unwell_.insert(what).second;
}

void Tally::on_replica_set(const std::string& key) {
  const std::string what = "replicaset " + key;
  const auto found = cluster_.world().replica_sets().find(key);
  const bool well =
      found == cluster_.world().replica_sets().end() || found->second.status.ready_replicas >= found->second.replicas;
  well ? unwell_.erase(what) : unwell_.insert(what).second;
}

/// Checks that a Deployment's pods are available and, unless it is paused, have its template.
void Tally::on_deployment(const std::string& key) {
  const std::string what = "deployment " + key;
  const auto found = cluster_.world().deployments().find(key);
  bool well = found == cluster_.world().deployments().end();
  if (!well) {
    const api::Deployment& deployment = found->second;
    const api::DeploymentStatus& status = deployment.status;
    well = status.observed_generation == deployment.metadata.generation &&
           status.available_replicas >= deployment.replicas &&
           (deployment.paused || status.updated_replicas >= deployment.replicas);
  }
  well ? unwell_.erase(what) : unwell_.insert(what).second;
}

void Tally::finish(RunOutcome& outcome) const {
  outcome.happenings = seen_.happenings;
  outcome.tainted_nodes_max = seen_.tainted_nodes_max;
  if (began_) outcome.lasted = since_beginning();
  if (well_since_ && began_) {
    outcome.recovered_at = std::max(*well_since_, *began_) - *began_;
    outcome.time_to_recovery = *well_since_ - disturbed_at_;
  }
  for (const std::string& each : unwell_) {
    if (outcome.unrecovered.size() < kUnrecoveredMax) outcome.unrecovered.push_back(each);
  }
  for (const auto& [key, pod] : cluster_.world().pods()) {
    if (is_unplaced(pod)) outcome.unplaced.push_back(key.text());
  }
}

}  // namespace spillway::sim
