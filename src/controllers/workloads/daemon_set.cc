#include "controllers/workloads/daemon_set.h"

#include "api/codec/codec.h"
#include "api/object/tolerations.h"
#include "controllers/shared/paths.h"
#include "policy/workloads/daemon_plan.h"
#include "policy/workloads/daemon_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::controllers {

namespace {

/// The node a daemon pod is for: bound to it, or named in its affinity.
std::string node_of(const api::Pod& pod) {
  if (!pod.spec.node_name.empty()) return pod.spec.node_name;
  const api::RequiredNodeAffinity affinity = api::required_node_affinity(pod.spec);
  if (!affinity.selector) return {};
  for (const api::NodeSelectorTerm& term : affinity.selector->terms) {
    for (const api::LabelRequirement& field : term.fields) {
      if (field.key == "metadata.name" && field.values.size() == 1) return field.values.front();
    }
  }
  return {};
}

/// Replaces the node names in the template: the node is decided.
void require_node(api::Json& spec, const std::string& node) {
  const api::Json field =
      api::Json::object({{"key", "metadata.name"}, {"operator", "In"}, {"values", api::Json::array({node})}});
  api::Json& terms =
      spec.make({"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  if (!terms.is_array() || terms.if_array()->empty()) terms = api::Json::array({api::Json::object()});
  for (api::Json& term : *terms.if_array()) term["matchFields"] = api::Json::array({field});
}

}  // namespace

std::vector<api::Toleration> daemon_tolerations(const api::PodSpec& spec) {
  std::vector<api::Toleration> tolerations = spec.tolerations;
  api::add_daemon_set_tolerations(tolerations, spec.host_network ? api::HostNetwork::kYes : api::HostNetwork::kNo);
  return tolerations;
}

api::Json daemon_pod(const api::DaemonSet& set, const std::string& node, const std::string& hash) {
  api::Json pod =
      pod_from_template({api::DaemonSet::kApiVersion, api::DaemonSet::kKind, set.metadata}, set.pod_template);
  const auto generation = set.metadata.annotations.find(std::string(workloads::kTemplateGenerationAnnotation));
  if (generation != set.metadata.annotations.end()) {
    pod.make({"metadata", "labels"})[workloads::kTemplateGenerationLabel] = generation->second;
  }
  if (!hash.empty()) pod.make({"metadata", "labels"})[workloads::kRevisionHash] = hash;
  api::Json& spec = pod.make({"spec"});
  require_node(spec, node);
  if (const auto decoded = api::decode<api::PodSpec>(set.pod_template.spec)) {
    api::Json tolerations = api::Json::array();
    for (const api::Toleration& toleration : daemon_tolerations(*decoded)) {
      tolerations.if_array()->push_back(api::encode(toleration));
    }
    spec["tolerations"] = std::move(tolerations);
  }
  return pod;
}

DaemonSetController::DaemonSetController(Shared shared, telemetry::Registry& metrics,
                                         client::ObjectCache<api::ControllerRevision>* revisions,
                                         EvictionHolds::Mode eviction_backoff)
    : shared_(shared), queue_metrics_(metrics, "daemonset"), holds_(eviction_backoff) {
  if (revisions != nullptr) {
    revisions_.emplace(shared_, *revisions, [this](const std::string& uid, Now now) {
      const auto key = key_by_uid_.find(uid);
      if (key != key_by_uid_.end()) enqueue(key->second, now);
    });
  }
  shared_.daemon_sets.cache().listen(
      {[this](const auto& before, const auto& after, Now now) { on_set(before, after, now); }});
  shared_.pods.cache().listen({[this](const auto& before, const auto& after, Now now) { on_pod(before, after, now); }});
  shared_.nodes.cache().listen(
      {[this](const auto& before, const auto& after, Now now) { on_node(before, after, now); }});
}

void DaemonSetController::start(Now now) {
  started_ = true;
  enqueue_all(now);
}

void DaemonSetController::on_set(const SetPtr& before, const SetPtr& after, Now now) {
  if (before && (!after || after->metadata.uid != before->metadata.uid)) {
    const std::string& uid = before->metadata.uid;
    key_by_uid_.erase(uid);
    expectations_.forget(uid);
    backoff_.erase(uid);
    holds_.forget(uid);
  }
  if (after) key_by_uid_[after->metadata.uid] = client::key_of(after->metadata);
  enqueue(client::key_of((after ? after : before)->metadata), now);
}

void DaemonSetController::on_pod(const PodPtr& before, const PodPtr& after, Now now) {
  pods_.on_change(before, after);
  const PodPtr& pod = after ? after : before;
  const api::OwnerReference* owner = api::controller_of(pod->metadata);
  const auto key = owner != nullptr ? key_by_uid_.find(owner->uid) : key_by_uid_.end();
  if (key == key_by_uid_.end()) return;
  Expectations& expected = expectations_.of(owner->uid);
  const bool another = !before || !after || before->metadata.uid != after->metadata.uid;
  if (after && another) expected.appeared(after->metadata.uid);
  if (before && (another || after->metadata.deletion_timestamp)) expected.left(before->metadata.uid);
  if (started_) holds_.on_pod(before, after, shared_.events, now);
  enqueue(key->second, now);
}

void DaemonSetController::on_node(const std::shared_ptr<const api::Node>& before,
                                  const std::shared_ptr<const api::Node>& after, Now now) {
  const bool same = before && after && before->spec == after->spec && before->metadata.labels == after->metadata.labels;
  if (!same) enqueue_all(now);
}

void DaemonSetController::enqueue(const std::string& key, Now now) {
  if (started_) queue_.add(key, now.mono);
}

void DaemonSetController::enqueue_all(Now now) {
  for (const auto& [key, set] : shared_.daemon_sets.cache().all()) enqueue(key, now);
}

void DaemonSetController::run(Now now) {
  if (!started_) return;
  while (const std::optional<std::string> key = queue_metrics_.take(queue_, now.mono)) {
    sync(*key, now);
    queue_.done(*key);
  }
  queue_metrics_.show(queue_, now.mono);
  arm();
}

void DaemonSetController::arm() {
  const std::optional<Instant> due = queue_.next_due();
  wake_up_.set(shared_.client, due);
}

void DaemonSetController::sync(const std::string& key, Now now) {
  const SetPtr set = shared_.daemon_sets.cache().find(key);
  if (!set) {
    queue_.forget(key);
    return;
  }
  const std::string& uid = set->metadata.uid;
  workloads::DaemonView view{.set = *set, .fits = {}, .by_node = {}};
  std::set<std::string> used;
  for (const PodPtr& pod : pods_.of(uid)) {
    view.by_node[node_of(*pod)].push_back(pod);
    used.insert(workloads::revision_hash(pod->metadata));
  }
  if (revisions_ && !set->metadata.deletion_timestamp) {
    const std::optional<std::string> hash = revisions_->keep(set, used, now);
    if (!hash) return;  // the end of that call requeues the set
    view.hash = *hash;
  }
  api::Pod wish;
  if (auto spec = api::decode<api::PodSpec>(set->pod_template.spec)) wish.spec = *std::move(spec);
  wish.spec.tolerations = daemon_tolerations(wish.spec);
  const api::RequiredNodeAffinity affinity = api::required_node_affinity(wish.spec);
  for (const auto& [name, node] : shared_.nodes.cache().all()) {
    view.fits.emplace(name, workloads::daemon_fit(wish, affinity, *node));
  }

  Expectations& expected = expectations_.of(uid);
  const bool may_act = expected.fulfilled(now.mono);
  if (may_act) expected.reset();
  if (const auto due = expected.next_sync(now.mono)) queue_.add(key, *due);
  GenerationBackoff& known = backoff_[uid];
  if (known.generation != set->metadata.generation) known = {set->metadata.generation, {}};
  workloads::FailureBackoff& backoff = known.nodes;
  backoff.tidy(now.mono);
  view.evictions = holds_.of(uid, now);
  const workloads::DaemonPlan plan = workloads::plan_daemons(
      view, may_act ? workloads::DaemonActs::kAllowed : workloads::DaemonActs::kAwaited, backoff, now);
  for (const PodPtr& pod : plan.remove) remove(set, key, pod);
  for (const std::string& node : plan.create) create(set, key, node, view.hash);
  if (plan.requeue_at) queue_.add(key, *plan.requeue_at);
  write_status(*set, key, plan.status);
}

void DaemonSetController::create(const SetPtr& set, const std::string& key, const std::string& node,
                                 const std::string& hash) {
  expectations_.of(set->metadata.uid).expect_creations(1);
  shared_.client.create(
      pods_path(set->metadata), daemon_pod(*set, node, hash),
      [this, set, key](const Result<api::Json>& outcome, Now then) { on_created(set, key, outcome, then); });
}

void DaemonSetController::on_created(const SetPtr& set, const std::string& key, const Result<api::Json>& outcome,
                                     Now now) {
  const std::string& uid = set->metadata.uid;
  if (outcome) {
    queue_.forget(key);
    const std::string made(outcome->string_at({"metadata", "uid"}));
    expectations_.created(uid, made, requeue(key), now);
    shared_.events.record(client::reference_to(*set), client::EventType::kNormal, "SuccessfulCreate",
                          fmt::format("Created pod: {}", outcome->string_at({"metadata", "name"})), now);
    return;
  }
  expectations_.creation_failed(uid, outcome.error(), shared_.client, requeue(key), now);
  // Not found: the namespace was just deleted, or writes are off (ShadowEngine).
  if (outcome.error().code != ErrorCode::kNotFound) {
    shared_.log.warning("pod was not created", {{"daemon_set", key}, {"error", outcome.error().text()}});
    shared_.events.record(client::reference_to(*set), client::EventType::kWarning, "FailedCreate",
                          fmt::format("Error creating: {}", outcome.error().message), now);
  }
  queue_.retry(key, now.mono);
}

void DaemonSetController::remove(const SetPtr& set, const std::string& key, const PodPtr& pod) {
  expectations_.of(set->metadata.uid).expect_deletion(pod->metadata.uid);
  shared_.client.remove(pods_path(pod->metadata, pod->metadata.name), delete_options(*pod),
                        [this, set, key, pod](const Result<api::Json>& outcome, Now then) {
                          on_removed(*set, key, *pod, outcome, then);
                        });
}

void DaemonSetController::on_removed(const api::DaemonSet& set, const std::string& key, const api::Pod& pod,
                                     const Result<api::Json>& outcome, Now now) {
  const std::string& uid = set.metadata.uid;
  if (outcome) return expectations_.deleted(uid, requeue(key), now);
  expectations_.deletion_failed(uid, pod.metadata.uid, outcome.error(), shared_.client, requeue(key), now);
  // Also if it was not found: the cache may have shown its end already, and then no event requeues the set.
  queue_.retry(key, now.mono);
}

ExpectationTable::Requeue DaemonSetController::requeue(const std::string& key) {
  return [this, key](Now now) { enqueue(key, now); };
}

void DaemonSetController::write_status(const api::DaemonSet& set, const std::string& key,
                                       const api::DaemonSetStatus& status) {
  if (status == set.status) return;
  const api::Json patch =
      api::Json::object({{"metadata", api::Json::object({{"resourceVersion", set.metadata.resource_version}})},
                         {"status", api::Json::object({{"currentNumberScheduled", status.current_number_scheduled},
                                                       {"numberMisscheduled", status.number_misscheduled},
                                                       {"desiredNumberScheduled", status.desired_number_scheduled},
                                                       {"numberReady", status.number_ready},
                                                       {"updatedNumberScheduled", status.updated_number_scheduled},
                                                       {"numberAvailable", status.number_available},
                                                       {"numberUnavailable", status.number_unavailable},
                                                       {"observedGeneration", status.observed_generation}})}});
  shared_.client.patch(
      client::object_path(api::DaemonSet::kApiVersion, "daemonsets", set.metadata.ns, set.metadata.name, "status"),
      client::PatchType::kMerge, patch,
      [this, key](const Result<api::Json>& outcome, Now then) { on_status_written(key, outcome, then); });
}

void DaemonSetController::on_status_written(const std::string& key, const Result<api::Json>& outcome, Now now) {
  if (outcome || outcome.error().code == ErrorCode::kNotFound) return;
  // After a conflict a newer version is usually on its way to the cache and requeues the set earlier.
  if (outcome.error().code == ErrorCode::kConflict) return queue_.add(key, now.mono + kAfterConflict);
  queue_.retry(key, now.mono);
}

}  // namespace spillway::controllers
