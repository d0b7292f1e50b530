#include "controllers/taints/replacement_order.h"

#include "api/object/kind_id.h"
#include "api/text/time_text.h"
#include "controllers/shared/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::controllers {

namespace {

/// The removal of a mark is repeated that long after a failure. A marked pod on a healthy node is deleted only when its
/// replacement runs, so that a few seconds cost nothing.
constexpr Duration kTakeBackAgain = seconds(5);

/// Sets the mark, or takes it back. The uid refuses a namesake.
api::Json mark_patch(const api::Pod& pod, std::optional<WallTime> asked_at) {
  api::Json annotations = api::Json::object();
  annotations[workloads::kReplacementAnnotation] = asked_at ? api::Json(api::format_time(*asked_at)) : api::Json();
  return api::Json::object(
      {{"metadata", api::Json::object({{"uid", pod.metadata.uid}, {"annotations", std::move(annotations)}})}});
}

}  // namespace

ReplacementOrder::ReplacementOrder(Shared shared, const lifecycle::LineFacts& facts, telemetry::Registry& metrics)
    : shared_(shared), facts_(facts), metrics_(metrics) {
  shared_.pods.cache().listen({[this](const PodPtr& before, const PodPtr& after, Now) { on_pod(before, after); }});
}

void ReplacementOrder::start() {
  started_ = true;
  for (const auto& [key, pod] : shared_.pods.cache().all()) take_back_if_well(pod);
}

void ReplacementOrder::on_pod(const PodPtr& before, const PodPtr& after) {
  const auto of_set = [](const PodPtr& pod) -> PodPtr {
    const api::OwnerReference* owner = pod ? api::controller_of(pod->metadata) : nullptr;
    return owner != nullptr && api::kind_of(*owner) == api::KindId{"apps", "ReplicaSet"} ? pod : nullptr;
  };
  pods_.on_change(of_set(before), of_set(after));
  if (before && (!after || after->metadata.uid != before->metadata.uid)) {
    asking_.erase(before->metadata.uid);
    taking_back_.erase(before->metadata.uid);
  }
  if (!after || !workloads::is_being_replaced(*after)) return;
  asking_.erase(after->metadata.uid);
  if (const api::OwnerReference* owner = api::controller_of(after->metadata)) marked_owners_.insert(owner->uid);
  if (started_) take_back_if_well(after);
}

void ReplacementOrder::on_node(const std::vector<PodPtr>& pods) {
  if (!started_) return;
  for (const PodPtr& pod : pods) take_back_if_well(pod);
}

bool ReplacementOrder::is_failed(const std::string& node) const {
  const auto known = shared_.nodes.cache().find(node);
  if (!known) return true;  // deleted, or not in the cache yet: such pods are the garbage collector's
  return std::ranges::any_of(known->spec.taints, [this](const api::Taint& taint) {
    return taint.effect == api::kNoExecute &&
           (taint.key == facts_.not_ready_taint || taint.key == facts_.unreachable_taint);
  });
}

bool ReplacementOrder::concerns(const api::Pod& pod) const {
  return workloads::is_replaceable(pod) && is_failed(pod.spec.node_name);
}

bool ReplacementOrder::is_asked(const api::Pod& pod) const {
  if (workloads::is_being_replaced(pod)) return true;
  const auto asking = asking_.find(pod.metadata.uid);
  return asking != asking_.end() && asking->second.on_its_way;
}

void ReplacementOrder::ask(const PodPtr& pod, Now now) {
  if (is_asked(*pod)) return;
  const auto [asking, first] = asking_.try_emplace(pod->metadata.uid, Asking{.since = now.wall});
  asking->second.on_its_way = true;
  marked_owners_.insert(api::controller_of(pod->metadata)->uid);
  if (first) {
    shared_.log.info("replacing a pod before it is deleted",
                     {{"pod", pod->key().text()}, {"node", pod->spec.node_name}});
  }
  shared_.client.patch(pod_path(*pod), client::PatchType::kMerge, mark_patch(*pod, now.wall),
                       [this, pod](const Result<api::Json>& outcome, Now then) { on_marked(*pod, outcome, then); });
}

void ReplacementOrder::on_marked(const api::Pod& pod, const Result<api::Json>& outcome, Now now) {
  if (!outcome) return on_refused(pod, outcome.error());
  count("asked");
  shared_.events.record(
      client::reference_to(pod), client::EventType::kNormal, "ReplacementAsked",
      fmt::format("Node {} has failed: this pod is deleted once another one runs in its place", pod.spec.node_name),
      now);
}

/// The replacement is requested again when the pod has its turn.
void ReplacementOrder::on_refused(const api::Pod& pod, const Error& error) {
  const auto asking = asking_.find(pod.metadata.uid);
  if (asking == asking_.end()) return;
  asking->second.on_its_way = false;
  if (std::exchange(asking->second.refused, true)) return;
  shared_.log.warning("a pod could not be marked to be replaced", {{"pod", pod.key().text()}, {"error", error.text()}});
}

/// nullopt: the pod's set was deleted, or is being deleted.
std::optional<ReplacementOrder::SetState> ReplacementOrder::state_of(const std::string& owner_uid, Now now) const {
  const std::vector<PodPtr> pods = pods_.of(owner_uid);
  if (pods.empty()) return std::nullopt;
  const api::OwnerReference* owner = api::controller_of(pods.front()->metadata);
  const auto set = shared_.replica_sets.cache().find(pods.front()->metadata.ns + "/" + owner->name);
  if (!set || set->metadata.uid != owner_uid || set->metadata.deletion_timestamp) return std::nullopt;
  SetState state;
  state.others.wanted = std::max(set->replicas, 0);
  for (const PodPtr& pod : pods) {
    if (!is_active(*pod)) continue;
    if (is_asked(*pod)) {
      const auto asking = asking_.find(pod->metadata.uid);
      const WallTime since = asking == asking_.end() ? now.wall : asking->second.since;
      state.replaced.push_back(
          {api::priority_of(*pod), workloads::replacement_asked_at(*pod).value_or(since), pod->key()});
    } else {
      state.others.count(*pod);
    }
  }
  return state;
}

std::optional<policy::Reason> ReplacementOrder::find_obstacle(const api::Pod& pod, Now now) const {
  const api::OwnerReference* owner = api::controller_of(pod.metadata);
  const auto state = owner != nullptr ? state_of(owner->uid, now) : std::nullopt;
  if (!state) return std::nullopt;
  const auto stage = workloads::stage_of(pod.key(), state->replaced, state->others, now.wall);
  if (stage == workloads::ReplacementStage::kMayGo) return std::nullopt;
  return workloads::reason_of(stage, state->others);
}

void ReplacementOrder::on_let_go(const api::Pod& pod, Now now) {
  const api::OwnerReference* owner = api::controller_of(pod.metadata);
  const auto state = owner != nullptr ? state_of(owner->uid, now) : std::nullopt;
  if (!state) return count("not-needed");
  const workloads::ReplicaStanding& others = state->others;
  const auto lacks = static_cast<std::int64_t>(state->replaced.size()) - 1;
  if (others.ready + lacks >= others.wanted) return count("ready");
  count(others.placed + lacks >= others.wanted ? "placed" : "not-made");
}

std::vector<PodPtr> ReplacementOrder::promised(Now now) {
  std::vector<PodPtr> promised;
  for (auto owner = marked_owners_.begin(); owner != marked_owners_.end();) {
    const auto state = state_of(*owner, now);
    if (!state || state->replaced.empty()) {
      owner = marked_owners_.erase(owner);
      continue;
    }
    std::int64_t left = workloads::unplaced(static_cast<std::int64_t>(state->replaced.size()), state->others);
    for (const workloads::ReplacedPod& each : state->replaced) {
      if (left-- <= 0) break;
      if (PodPtr pod = shared_.pods.cache().find(each.pod.text())) promised.push_back(std::move(pod));
    }
    ++owner;
  }
  std::ranges::stable_sort(promised, std::ranges::greater(), [](const PodPtr& pod) { return api::priority_of(*pod); });
  return promised;
}

/// The node has recovered: the pod counts again, and the set deletes the least useful of its pods.
void ReplacementOrder::take_back_if_well(const PodPtr& pod) {
  if (is_failed(pod->spec.node_name)) return;
  if (!workloads::is_being_replaced(*pod)) {
    const auto asking = asking_.find(pod->metadata.uid);
    if (asking != asking_.end() && !asking->second.on_its_way) asking_.erase(asking);
    return;
  }
  if (!taking_back_.insert(pod->metadata.uid).second) return;
  shared_.client.patch(pod_path(*pod), client::PatchType::kMerge, mark_patch(*pod, std::nullopt),
                       [this, pod](const Result<api::Json>& outcome, Now then) { on_taken_back(*pod, outcome, then); });
}

void ReplacementOrder::on_taken_back(const api::Pod& pod, const Result<api::Json>& outcome, Now now) {
  taking_back_.erase(pod.metadata.uid);
  if (outcome) {
    count("not-needed");
    shared_.events.record(client::reference_to(pod), client::EventType::kNormal, "ReplacementNotNeeded",
                          fmt::format("Node {} is back: this pod counts again", pod.spec.node_name), now);
    return;
  }
  shared_.client.at(now.mono + kTakeBackAgain, [this, key = pod.key().text()](Now) {
    if (const PodPtr again = shared_.pods.cache().find(key)) take_back_if_well(again);
  });
}

void ReplacementOrder::count(std::string_view outcome) {
  metrics_
      .counter("spillway_pod_replacements_total",
               "Pods of failed nodes to be replaced before they are deleted, by outcome",
               {{"outcome", std::string(outcome)}})
      .add();
}

}  // namespace spillway::controllers
