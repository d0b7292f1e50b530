#include "agent/companion/foreign_pods.h"

#include "agent/contract/kill_grace.h"
#include "agent/pod_state/forced_end.h"
#include "agent/pod_state/pod_status.h"
#include "agent/pod_state/pod_status_merge.h"

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::agent {
namespace {

constexpr int kMarksMax = 5;

PodPlace place_of(const api::Pod& pod) {
  return {.uid = pod.metadata.uid,
          .pod = pod.key(),
          .qos = api::qos_of(pod),
          .cgroup_uid = cgroup_uid(pod),
          .containers = named_containers(pod),
          .volumes = disk_volumes(pod)};
}

/// The status of an evicted pod, as the kubelet reports it.
api::PodStatus evicted_status(const api::Pod& pod, const eviction::EvictPod& action, WallTime at) {
  api::PodStatus status = pod.status;
  status.observed_generation = std::max(status.observed_generation, pod.metadata.generation);
  status.phase = "Failed";
  status.reason = "Evicted";
  status.message = action.message;
  if (!action.disruption_target) return status;
  std::erase_if(status.conditions, [](const api::PodCondition& each) { return each.type == "DisruptionTarget"; });
  api::PodCondition target;
  target.type = "DisruptionTarget";
  target.status = "True";
  target.reason = "TerminationByKubelet";
  target.message = action.message;
  target.last_transition_time = at;
  target.observed_generation = pod.metadata.generation;
  status.conditions.push_back(std::move(target));
  return status;
}

}  // namespace

void ForeignPods::on_pod(const Ptr& before, const Ptr& after, Now now) {
  if (before && (!after || before->metadata.uid != after->metadata.uid)) {
    uids_.erase(before->key());
    if (const auto gone = entries_.find(before->metadata.uid); gone != entries_.end()) {
      Entry entry = std::move(gone->second);
      entries_.erase(gone);
      finish(entry, now);
    }
  }
  changed_ = true;
  if (!after) return;
  const std::string& uid = after->metadata.uid;
  uids_[after->key()] = uid;
  Entry& entry = entries_[uid];
  entry.pod = after;
  // The kubelet's own status has overwritten the mark, because it had not seen it: the mark is written again.
  const bool taken_back = entry.mark && entry.marks > 0 && !entry.in_flight && !entry.waiting_to_retry;
  if (taken_back && !api::is_terminal(*after) && entry.marks < kMarksMax) write_mark(uid, now);
}

void ForeignPods::on_measured(const api::Summary& summary) {
  std::set<std::string, std::less<>> found;
  for (const api::PodStats& stats : summary.pods) {
    if (stats.memory) found.insert(stats.uid);
  }
  for (auto& [uid, entry] : entries_) entry.measured = found.contains(uid);
}

void ForeignPods::on_stopped(const std::string& uid, Now now) {
  const auto found = entries_.find(uid);
  if (found != entries_.end()) finish(found->second, now);
}

void ForeignPods::finish(Entry& entry, Now now) {
  if (!std::exchange(entry.ending, false)) return;
  entry.measured = false;  // until a measurement shows the pod running again
  const std::string uid = entry.pod->metadata.uid;
  if (on_finished_) on_finished_(uid, now);
}

std::vector<const api::Pod*> ForeignPods::active() const {
  std::vector<const api::Pod*> pods;
  if (hold_) return pods;
  for (const auto& [key, uid] : uids_) {
    const Entry& entry = entries_.at(uid);
    if (entry.measured && !api::is_terminal(*entry.pod)) pods.push_back(entry.pod.get());
  }
  return pods;
}

std::vector<const api::Pod*> ForeignPods::all() const {
  std::vector<const api::Pod*> pods;
  for (const auto& [key, uid] : uids_) pods.push_back(entries_.at(uid).pod.get());
  return pods;
}

const api::Pod* ForeignPods::find(const std::string& uid) const {
  const auto found = entries_.find(uid);
  return found == entries_.end() ? nullptr : found->second.pod.get();
}

void ForeignPods::evict(const eviction::EvictPod& action, Urgency urgency, Now now) {
  const auto found = entries_.find(action.uid);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.ending = true;
  if (on_evicting_) on_evicting_(action, now);
  if (consequence_ == Consequence::kShadow) {
    // Reported in a step of its own: the caller has not finished its decision.
    context_.api.at(now.mono, [this, uid = action.uid](Now later) { on_stopped(uid, later); });
    return;
  }
  const Duration grace = seconds(std::max(action.grace_period_seconds, kStopSecondsMin));
  context_.host_commands.emplace_back(StopPod{.uid = action.uid,
                                              .grace = urgency == Urgency::kEmergency ? Duration{} : grace,
                                              .storage_freed = frees_disk(action)});
  entry.mark = action;
  entry.marks = 0;
  if (!entry.in_flight && !entry.waiting_to_retry) write_mark(action.uid, now);
}

void ForeignPods::kill_now(const std::string& uid) {
  if (consequence_ == Consequence::kActs) context_.host_commands.emplace_back(StopPod{.uid = uid});
}

void ForeignPods::write_mark(const std::string& uid, Now now) {
  Entry& entry = entries_.at(uid);
  const api::PodStatus& reported = entry.pod->status;
  const api::PodStatus merged =
      merge_status(reported, evicted_status(*entry.pod, *entry.mark, now.wall), RunningContainers::kNone, now.wall);
  const api::Json patch = status_patch(uid, reported, merged);
  if (patch.is_null()) return;
  entry.in_flight = true;
  ++entry.marks;
  context_.api.patch(
      client::object_path("v1", "pods", entry.pod->metadata.ns, entry.pod->metadata.name, "status"),
      client::PatchType::kStrategicMerge, patch,
      [this, uid](const Result<api::Json>& outcome, Now answered) { on_answer(uid, outcome, answered); });
}

void ForeignPods::on_answer(const std::string& uid, const Result<api::Json>& outcome, Now now) {
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.in_flight = false;
  if (outcome) {
    entry.back_off.reset();
    return;
  }
  const ErrorCode code = outcome.error().code;
  // The pod is gone, or another one has its name: the watch will report it too.
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) return;
  if (entry.back_off.is_idle()) {
    context_.log.warning("eviction not written, trying again",
                         {{"pod", entry.pod->key().text()}, {"error", outcome.error().text()}});
  }
  entry.marks = std::max(entry.marks - 1, 0);
  entry.waiting_to_retry = true;
  context_.api.at(now.mono + entry.back_off.next(), [this, uid](Now later) {
    const auto again = entries_.find(uid);
    if (again == entries_.end() || !std::exchange(again->second.waiting_to_retry, false)) return;
    if (!api::is_terminal(*again->second.pod)) write_mark(uid, later);
  });
}

std::optional<std::vector<PodPlace>> ForeignPods::take_places() {
  if (!std::exchange(changed_, false)) return std::nullopt;
  std::vector<PodPlace> places;
  for (const auto& [key, uid] : uids_) {
    const Entry& entry = entries_.at(uid);
    // A marked pod that has ended still has processes until its cgroup is empty.
    if (!api::is_terminal(*entry.pod) || entry.ending) places.push_back(place_of(*entry.pod));
  }
  if (places == reported_) return std::nullopt;
  reported_ = places;
  return places;
}

std::size_t ForeignPods::marks_waiting() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      entries_, [](const auto& entry) { return entry.second.in_flight || entry.second.waiting_to_retry; }));
}

}  // namespace spillway::agent
