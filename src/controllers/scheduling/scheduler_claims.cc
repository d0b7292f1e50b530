// Claims that are given a volume when their first pod is placed.
#include "api/object/pod_volumes.h"
#include "controllers/scheduling/scheduler.h"
#include "policy/storage/claim_rules.h"
#include "policy/storage/volume_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::controllers {

namespace {

/// kube-scheduler's names for the events of one kind.
struct EventNames {
  std::string_view add;
  std::string_view update;
  std::string_view remove;

  std::string_view of(bool was_there, bool is_there) const { return !was_there ? add : is_there ? update : remove; }
};

constexpr EventNames kClaimEvents{"PersistentVolumeClaimAdd", "PersistentVolumeClaimUpdate",
                                  "PersistentVolumeClaimDelete"};
constexpr EventNames kVolumeEvents{"PersistentVolumeAdd", "PersistentVolumeUpdate", "PersistentVolumeDelete"};
constexpr EventNames kClassEvents{"StorageClassAdd", "StorageClassUpdate", "StorageClassDelete"};

/// True if the change concerns the choice of a claim, or the nodes that reach the volume.
bool is_another(const api::PersistentVolume& before, const api::PersistentVolume& after) {
  return before.claim_ref != after.claim_ref || before.status.phase != after.status.phase ||
         before.required_nodes != after.required_nodes || before.metadata.labels != after.metadata.labels ||
         before.capacity != after.capacity || before.access_modes != after.access_modes ||
         storage::class_of(before) != storage::class_of(after);
}

}  // namespace

/// A pod that has a node and waits for its claims.
struct Scheduler::ClaimWait {
  PodPtr pod;
  std::string node;
  storage::ClaimPlan plan;
  std::set<client::ObjectKey> asked;  // claims that have requested a volume on the node
  Instant until;
  std::size_t writes = 0;  // not answered yet
  std::string failure;     // error of a failed write
};

struct Scheduler::ClaimProgress {
  bool waits = false;
  std::string failure;  // why the volume will not be bound; empty: it may be
};

void Scheduler::bind_claims(const PodPtr& pod, const std::string& node, storage::ClaimPlan plan, Now now) {
  auto wait = std::make_shared<ClaimWait>();
  wait->pod = pod;
  wait->node = node;
  wait->plan = std::move(plan);
  wait->until = now.mono + options_.claims_timeout;
  for (const auto& [claim, volume] : wait->plan.bindings) taken_.insert(volume->metadata.name);
  waits_[pod->metadata.uid] = wait;
  std::vector<storage::StorageWrite> writes;
  for (const auto& [claim, volume] : wait->plan.bindings) {
    if (auto write = storage::reserve(*volume, *claim)) writes.push_back(*std::move(write));
  }
  for (const storage::ClaimPtr& claim : wait->plan.provisions) {
    if (auto write = storage::ask_for_volume(*claim, node)) writes.push_back(*std::move(write));
  }
  wait->writes = writes.size();
  for (const storage::StorageWrite& write : writes) {
    client_.patch(path_of(write), client::PatchType::kMerge, write.patch,
                  [this, wait](const Result<api::Json>& outcome, Now then) {
                    on_reserved(wait, outcome ? Outcome() : Outcome(outcome.error()), then);
                  });
  }
  client_.at(wait->until, [this](Now then) { look_at_waits(then); });
  if (writes.empty()) {
    --bindings_;
    ++waits_for_volumes_;
    look_at_waits(now);
  }
}

void Scheduler::on_reserved(const std::shared_ptr<ClaimWait>& wait, const Outcome& outcome, Now now) {
  if (!outcome && wait->failure.empty()) wait->failure = outcome.error().text();
  if (--wait->writes > 0) return;
  --bindings_;  // binding the claims may take long; it does not hold up other pods
  const auto known = waits_.find(wait->pod->metadata.uid);
  if (known == waits_.end() || known->second != wait) return;  // the pod is gone
  ++waits_for_volumes_;
  if (!wait->failure.empty()) {
    end_wait(wait->pod->metadata.uid);
    return fail_wait(*wait, wait->failure, now);
  }
  look_at_waits(now);
}

void Scheduler::end_wait(const std::string& uid) {
  const auto found = waits_.find(uid);
  if (found == waits_.end()) return;
  for (const auto& [claim, volume] : found->second->plan.bindings) taken_.erase(volume->metadata.name);
  if (found->second->writes == 0) --waits_for_volumes_;
  waits_.erase(found);
}

storage::ClaimPtr Scheduler::claim_now(const storage::ClaimPtr& claim) {
  auto current = storage_.claims().find(client::key_of(claim->metadata));
  return current && current->metadata.uid == claim->metadata.uid ? current : nullptr;
}

/// The progress of a claim that was given an existing volume.
Scheduler::ClaimProgress Scheduler::progress_of_binding(
    const std::pair<storage::ClaimPtr, storage::VolumePtr>& binding) {
  const storage::ClaimPtr claim = claim_now(binding.first);
  const bool is_bound =
      claim && storage::is_bind_completed(*claim) && claim->volume_name == binding.second->metadata.name;
  return is_bound ? ClaimProgress{} : ClaimProgress{.waits = true};
}

/// The progress of a claim whose volume is made for the node. The provisioner removes the node from the claim if it
/// cannot make the volume there; a volume that was made elsewhere may be out of the node's reach.
Scheduler::ClaimProgress Scheduler::progress_of_provision(ClaimWait& wait, const storage::ClaimPtr& given) {
  const storage::ClaimPtr claim = claim_now(given);
  const std::string failed = fmt::format("provisioning failed for PVC \"{}\"", given->metadata.name);
  if (!claim) return {.failure = failed};
  const client::ObjectKey key = client::key_of(claim->metadata);
  if (storage::selected_node(*claim) == wait.node) {
    wait.asked.insert(key);
  } else if (wait.asked.contains(key)) {
    return {.failure = failed};
  }
  if (!storage::is_bind_completed(*claim) || claim->volume_name.empty()) return {.waits = true};
  const auto volume = storage_.volumes().find(claim->volume_name);
  if (!volume) return {.waits = true};
  const auto node = nodes_.cache().find(wait.node);
  if (node && storage_.reaches(*volume, node->metadata)) return {};
  return {.failure = fmt::format("pv \"{}\" node affinity doesn't match node \"{}\"", claim->volume_name, wait.node)};
}

Scheduler::ClaimProgress Scheduler::progress_of(ClaimWait& wait, Now now) {
  if (!nodes_.cache().find(wait.node)) return {.failure = fmt::format("node \"{}\" not found", wait.node)};
  ClaimProgress all;
  const auto note = [&all](ClaimProgress one) {
    if (all.failure.empty()) all.failure = std::move(one.failure);
    all.waits = all.waits || one.waits;
  };
  for (const auto& binding : wait.plan.bindings) note(progress_of_binding(binding));
  for (const storage::ClaimPtr& claim : wait.plan.provisions) note(progress_of_provision(wait, claim));
  if (all.failure.empty() && all.waits && wait.until <= now.mono)
    all.failure = "binding volumes: context deadline exceeded";
  return all;
}

void Scheduler::fail_wait(const ClaimWait& wait, const std::string& why, Now now) {
  const PodPtr pod = wait.pod;
  if (!assumed_.contains(pod->metadata.uid)) return;
  const auto found = attempts_.find(pod->metadata.uid);
  const Attempt attempt = found == attempts_.end() ? Attempt{.found = now.mono} : found->second;
  timings_.note_point(SchedulerTimings::Point::kPreBind, SchedulerTimings::Status::kError, pod->spec.scheduler_name,
                      attempt.sampled, now.mono - attempt.found);
  scheduler_metrics_.count_attempt(pod->spec.scheduler_name, SchedulerMetrics::Result::kError, attempt.course,
                                   now.mono);
  log_.warning("a pod waits no longer for its claims",
               {{"pod", pod->key().text()}, {"node", wait.node}, {"error", why}});
  give_up(pod, wait.node, now);
  const PodPtr current = still_waiting(pod);
  if (!current) return;
  report(current, fmt::format("running PreBind plugin \"VolumeBinding\": {}", why), std::nullopt, now,
         "SchedulerError");
}

void Scheduler::look_at_waits(Now now) {
  std::vector<std::pair<std::shared_ptr<ClaimWait>, std::string>> ended;  // with why it failed
  for (const auto& [uid, wait] : waits_) {
    ClaimProgress progress = progress_of(*wait, now);  // also while writes are open: an answer may be late
    if (wait->writes > 0 || (progress.waits && progress.failure.empty())) continue;
    ended.emplace_back(wait, std::move(progress.failure));
  }
  for (const auto& [wait, failure] : ended) {
    end_wait(wait->pod->metadata.uid);
    if (!failure.empty()) {
      fail_wait(*wait, failure, now);
      continue;
    }
    ++bindings_;
    bind(wait->pod, wait->node, now);
  }
}

void Scheduler::on_claim(const StorageCache::ClaimPtr& before, const StorageCache::ClaimPtr& after, Now now) {
  const api::PersistentVolumeClaim& claim = after ? *after : *before;
  const std::string_view event = kClaimEvents.of(before != nullptr, after != nullptr);
  const EventTiming timing(timings_, event);
  look_at_waits(now);
  for (const client::ObjectKey& key : claimants_) {
    const PodPtr pod = pods_.cache().find(key);
    if (!pod || pod->metadata.ns != claim.metadata.ns) continue;
    const std::vector<std::string> names = api::claims_of(*pod);
    if (std::ranges::find(names, claim.metadata.name) != names.end()) queue_.wake(key, event);
  }
}

void Scheduler::on_volume(const storage::VolumePtr& before, const storage::VolumePtr& after, Now now) {
  if (before && after && !is_another(*before, *after)) return;
  const std::string_view event = kVolumeEvents.of(before != nullptr, after != nullptr);
  const EventTiming timing(timings_, event);
  look_at_waits(now);
  try_claimants_again(event);
}

void Scheduler::on_class(const StorageCache::ClassPtr& before, const StorageCache::ClassPtr& after) {
  const std::string_view event = kClassEvents.of(before != nullptr, after != nullptr);
  const EventTiming timing(timings_, event);
  try_claimants_again(event);
}

void Scheduler::try_claimants_again(std::string_view event) {
  for (const client::ObjectKey& key : claimants_) queue_.wake(key, event);
}

}  // namespace spillway::controllers
