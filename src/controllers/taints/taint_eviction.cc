#include "controllers/taints/taint_eviction.h"

#include "api/text/time_text.h"
#include "base/elapsed.h"
#include "controllers/shared/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::controllers {

namespace {

using lifecycle::TaintEvictions;

// A deletion that waits to be sent goes through even if its node comes back meanwhile; in the schedule it is cancelled.
// So only a few wait there: more than are sent until the next look, by upstream's default rate.
constexpr std::size_t kBacklogMax = 32;
constexpr Duration kBacklogWait = seconds(1);

api::Json disruption_patch(const api::Pod& pod, Now now) {
  const api::Json condition = api::Json::object({{"type", "DisruptionTarget"},
                                                 {"status", "True"},
                                                 {"reason", "DeletionByTaintManager"},
                                                 {"message", "Taint manager: deleting due to NoExecute taint"},
                                                 {"lastTransitionTime", api::format_time(now.wall)}});
  return api::Json::object({{"metadata", api::Json::object({{"uid", pod.metadata.uid}})},
                            {"status", api::Json::object({{"conditions", api::Json::array({condition})}})}});
}

std::string subject_of(const api::PodKey& pod) {
  return "pod/" + pod.text();
}

/// "ReplicaSet/shop/web"; empty: no controller.
std::string owner_of(const api::Pod& pod) {
  const api::OwnerReference* owner = api::controller_of(pod.metadata);
  return owner == nullptr ? std::string() : fmt::format("{}/{}/{}", owner->kind, pod.metadata.ns, owner->name);
}

/// The pod is not there any more, or another one has its name.
bool is_gone(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kConflict;
}

}  // namespace

TaintEvictionController::TaintEvictionController(Shared shared, const PodsByNode& pods_by_node,
                                                 LifecycleMetrics& metrics, ActGate& gate, Options options)
    : shared_(shared),
      pods_by_node_(pods_by_node),
      metrics_(metrics),
      gate_(gate),
      options_(options),
      evictions_(options.profile),
      replacements_(shared_) {
  if (options_.respect_budgets) budgets_.emplace(shared_);
  shared_.nodes.cache().listen(
      {[this](const NodePtr& before, const NodePtr& after, Now now) { on_node(before, after, now); }});
  shared_.pods.cache().listen(
      {[this](const PodPtr& before, const PodPtr& after, Now now) { on_pod(before, after, now); }});
}

void TaintEvictionController::start(Now now) {
  started_ = true;
  for (const auto& [name, node] : shared_.nodes.cache().all()) {
    if (lifecycle::no_execute_taints(node->spec.taints).empty()) continue;
    if (options_.profile.keep_taints_of_failing && has_health_taint(*node)) {
      held_.insert(name);
    } else {
      evaluate_as_before(*node, now);
    }
  }
  if (!held_.empty()) {
    shared_.client.at(now.mono + options_.start_hold, [this](Now then) { release_held(then); });
  }
}

bool TaintEvictionController::has_health_taint(const api::Node& node) const {
  return std::ranges::any_of(node.spec.taints, [this](const api::Taint& taint) {
    return taint.effect == api::kNoExecute &&
           (taint.key == options_.profile.not_ready_taint || taint.key == options_.profile.unreachable_taint);
  });
}

void TaintEvictionController::release_held(Now now) {
  for (const std::string& name : std::exchange(held_, {})) {
    if (const NodePtr node = shared_.nodes.cache().find(name)) evaluate_as_before(*node, now);
  }
}

/// Pods that were on the node when this process started: their wait began when the last taint was added or, if they are
/// younger, when they were created. Both times are the API server's, and only ages are taken from them.
void TaintEvictionController::evaluate_as_before(const api::Node& node, Now now) {
  std::vector<api::Taint> taints = lifecycle::no_execute_taints(node.spec.taints);
  std::optional<WallTime> tainted;
  for (const api::Taint& taint : taints) {
    if (!taint.time_added) return evaluate_node(node, now);
    tainted = tainted ? std::max(*tainted, *taint.time_added) : *taint.time_added;
  }
  if (!tainted || !options_.profile.keep_taints_of_failing) return evaluate_node(node, now);
  carry_out(evictions_.on_node(node.metadata.name, std::move(taints), {}, now), now);
  for (const PodPtr& pod : pods_by_node_.on(node.metadata.name)) {
    const WallTime since = std::max(*tainted, pod->metadata.creation_timestamp.value_or(*tainted));
    const Duration age = std::max(elapsed(since, now.wall), Duration::zero());
    carry_out(evictions_.on_pod(*pod, now, now.mono - age), now);
  }
}

void TaintEvictionController::evaluate_node(const api::Node& node, Now now) {
  const std::vector<PodPtr> pods = pods_by_node_.on(node.metadata.name);
  std::vector<const api::Pod*> pointers;
  for (const PodPtr& pod : pods) pointers.push_back(pod.get());
  carry_out(evictions_.on_node(node.metadata.name, lifecycle::no_execute_taints(node.spec.taints), pointers, now), now);
}

void TaintEvictionController::on_node(const NodePtr& before, const NodePtr& after, Now now) {
  if (!started_) return;
  if (!after) {
    held_.erase(before->metadata.name);
    evictions_.on_node_gone(before->metadata.name);
    return;
  }
  const bool known = before && before->metadata.uid == after->metadata.uid;
  if (known && lifecycle::no_execute_taints(before->spec.taints) == lifecycle::no_execute_taints(after->spec.taints)) {
    return;
  }
  held_.erase(after->metadata.name);
  evaluate_node(*after, now);
}

void TaintEvictionController::on_pod(const PodPtr& before, const PodPtr& after, Now now) {
  if (!started_) return;
  const bool replaced = before && after && before->metadata.uid != after->metadata.uid;
  if (before && (!after || replaced)) gate_.release(subject_of(before->key()));
  if (before && (!after || replaced)) carry_out(evictions_.on_pod_gone(before->key()), now);
  if (!after || after->spec.node_name.empty()) return;
  const bool same = before && !replaced && before->spec.node_name == after->spec.node_name &&
                    before->spec.tolerations == after->spec.tolerations;
  if (!same) carry_out(evictions_.on_pod(*after, now), now);
}

void TaintEvictionController::carry_out(const std::vector<TaintEvictions::Order>& orders, Now now) {
  for (const TaintEvictions::Order& order : orders) {
    if (order.kind == TaintEvictions::OrderKind::kEvict) {
      evict(order.pod, order.reason, now);
      continue;
    }
    gate_.release(subject_of(order.pod));
    const PodPtr pod = shared_.pods.cache().find(order.pod.text());
    if (!pod) continue;
    shared_.events.record(client::reference_to(*pod), client::EventType::kNormal, "TaintManagerEviction",
                          fmt::format("Cancelling deletion of Pod {}", order.pod.text()), now);
  }
  arm();
}

void TaintEvictionController::evict(const api::PodKey& key, const policy::Reason& reason, Now now) {
  const PodPtr pod = shared_.pods.cache().find(key.text());
  if (!pod) return evictions_.on_evicted(key, true, now);
  if (shared_.client.waiting() >= kBacklogMax) return evictions_.postpone(key, now.mono + kBacklogWait, now);
  if (holds(*pod, now)) return;
  shared_.log.info("evicting pod",
                   {{"pod", key.text()}, {"node", pod->spec.node_name}, {"reason", policy::render(reason)}});
  shared_.events.record(client::reference_to(*pod), client::EventType::kNormal, "TaintManagerEviction",
                        fmt::format("Marking for deletion Pod {}", key.text()), now);
  mark_disrupted(pod, 1, now.mono, now);
}

/// Whether a budget, a missing replacement or a brake stands against the deletion; then it comes again.
bool TaintEvictionController::holds(const api::Pod& pod, Now now) {
  if (budgets_) {
    if (const auto obstacle = budgets_->find_obstacle(pod)) {
      postpone(pod, *obstacle, now);
      return true;
    }
  }
  if (options_.wait_for_replacement) {
    if (const auto obstacle = replacements_.find_obstacle(pod, now)) {
      postpone(pod, *obstacle, now);
      return true;
    }
  }
  const NodePtr node = shared_.nodes.cache().find(pod.spec.node_name);
  const lifecycle::Act act{
      lifecycle::ActKind::kDeletePod,
      node ? lifecycle::zone_key(node->metadata.labels, options_.profile.zone_labels) : std::string(), owner_of(pod)};
  const auto again = gate_.ask(act, subject_of(pod.key()), now);
  if (again) evictions_.postpone(pod.key(), *again, now);
  return again.has_value();
}

void TaintEvictionController::postpone(const api::Pod& pod, const policy::Reason& reason, Now now) {
  const Instant again = now.mono + options_.obstacle_wait;
  gate_.hold(lifecycle::ActKind::kDeletePod, subject_of(pod.key()), reason, again, now);
  evictions_.postpone(pod.key(), again, now);
  arm();
}

/// The API server knows the budgets and counts; it also writes the DisruptionTarget condition.
void TaintEvictionController::evict_within_budget(const PodPtr& pod, int attempt, Instant ordered) {
  const api::Json body = api::Json::object(
      {{"apiVersion", "policy/v1"},
       {"kind", "Eviction"},
       {"metadata", api::Json::object({{"name", pod->metadata.name}, {"namespace", pod->metadata.ns}})},
       {"deleteOptions", delete_options(*pod)}});
  shared_.client.create(
      pod_path(*pod, "eviction"), body, [this, pod, attempt, ordered](const Result<api::Json>& outcome, Now now) {
        if (!outcome && outcome.error().code == ErrorCode::kTooManyRequests) {
          return postpone(*pod, {policy::ReasonCode::kBudgetRefuses, {{"message", outcome.error().message}}}, now);
        }
        on_removed(pod, attempt, ordered, outcome, now);
      });
}

void TaintEvictionController::mark_disrupted(const PodPtr& pod, int attempt, Instant ordered, Now now) {
  if (options_.respect_budgets) return evict_within_budget(pod, attempt, ordered);
  const api::PodCondition* known = api::find_condition(pod->status.conditions, "DisruptionTarget");
  const bool marked = known != nullptr && known->status == "True" && known->reason == "DeletionByTaintManager";
  if (!options_.profile.disruption_target_condition || marked) return remove(pod, attempt, ordered);
  shared_.client.patch(pod_path(*pod, "status"), client::PatchType::kStrategicMerge, disruption_patch(*pod, now),
                       [this, pod, attempt, ordered](const Result<api::Json>& outcome, Now then) {
                         if (outcome) return remove(pod, attempt, ordered);
                         if (is_gone(outcome.error())) return evictions_.on_evicted(pod->key(), true, then);
                         attempt_failed(pod, attempt, ordered, outcome.error(), then);
                       });
}

void TaintEvictionController::remove(const PodPtr& pod, int attempt, Instant ordered) {
  shared_.client.remove(pod_path(*pod), delete_options(*pod),
                        [this, pod, attempt, ordered](const Result<api::Json>& outcome, Now now) {
                          on_removed(pod, attempt, ordered, outcome, now);
                        });
}

void TaintEvictionController::on_removed(const PodPtr& pod, int attempt, Instant ordered,
                                         const Result<api::Json>& outcome, Now now) {
  if (!outcome && !is_gone(outcome.error())) return attempt_failed(pod, attempt, ordered, outcome.error(), now);
  if (outcome) metrics_.pod_deletions.add();
  metrics_.pod_deletion_seconds.observe(std::chrono::duration<double>(now.mono - ordered).count());
  gate_.release(subject_of(pod->key()));
  evictions_.on_evicted(pod->key(), true, now);
  arm();
}

void TaintEvictionController::attempt_failed(const PodPtr& pod, int attempt, Instant ordered, const Error& error,
                                             Now now) {
  if (attempt < options_.attempts_max) {
    shared_.client.at(now.mono + options_.attempt_wait,
                      [this, pod, attempt, ordered](Now then) { mark_disrupted(pod, attempt + 1, ordered, then); });
    return;
  }
  shared_.log.warning("pod was not evicted", {{"pod", pod->key().text()}, {"error", error.text()}});
  evictions_.on_evicted(pod->key(), false, now);
  arm();
}

void TaintEvictionController::arm() {
  metrics_.eviction_timers.set(static_cast<double>(evictions_.schedule().all().size()));
  const std::optional<Instant> due = evictions_.next_due();
  wake_up_.set(shared_.client, due, [this](Now now) { carry_out(evictions_.take_due(now), now); });
}

}  // namespace spillway::controllers
