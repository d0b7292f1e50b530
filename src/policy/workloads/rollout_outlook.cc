#include "policy/workloads/rollout_outlook.h"

#include "policy/workloads/deployment_status.h"
#include "policy/workloads/pod_complaint.h"
#include "policy/workloads/rollout_bounds.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace spillway::workloads {

namespace {

using policy::Fact;
using policy::Reason;
using policy::ReasonCode;

class Outlook {
 public:
  Outlook(const api::Deployment& deployment, const ReplicaSets& sets, const std::vector<PodPtr>& pods)
      : d_(deployment), sets_(sets), pods_(pods), latest_(find_new(deployment, sets)), old_(all_but(latest_, sets)) {
    for (const ReplicaSetPtr& set : sets) {
      asked_for_ += set->replicas;
      available_ += set->status.available_replicas;
    }
  }

  policy::Decision decide(WallTime now) {
    decision_.at = now;
    decision_.by = "deployment-controller";
    decision_.area = policy::Area::kWorkloads;
    decision_.action = "roll out";
    decision_.subject = {"Deployment", d_.metadata.ns, d_.metadata.name, d_.metadata.uid};
    decision_.verdict = policy::Verdict::kWaits;
    if (d_.status.observed_generation < d_.metadata.generation) {
      add(ReasonCode::kRolloutUnobserved, {});
    } else if (is_complete(d_, d_.status)) {
      decision_.verdict = policy::Verdict::kRests;
      add(ReasonCode::kRolledOut, {{"pods_wanted", std::int64_t{d_.replicas}}});
      if (d_.paused) add(ReasonCode::kRolloutPaused, {});
      return std::move(decision_);
    }
    if (d_.paused) add(ReasonCode::kRolloutPaused, {});
    name_deadline();
    name_refusals();
    if (!d_.paused) name_bounds();
    std::vector<Fact> counts{{"pods_updated", std::int64_t{d_.status.updated_replicas}},
                             {"pods_wanted", std::int64_t{d_.replicas}},
                             {"pods_available", std::int64_t{d_.status.available_replicas}}};
    if (const std::int64_t before = last_revision(sets_); before > 0) counts.push_back({"undo_revision", before});
    add(ReasonCode::kRolloutMoves, std::move(counts));
    name_pods();
    return std::move(decision_);
  }

 private:
  void add(ReasonCode code, std::vector<Fact> facts) { decision_.reasons.push_back({code, std::move(facts)}); }

  void name_deadline() {
    const api::WorkloadCondition* progress = find_condition(d_.status.conditions, kProgressing);
    if (progress == nullptr || progress->reason != kProgressDeadlineExceeded) return;
    add(ReasonCode::kDeadlineExceeded, {{"deadline_seconds", std::int64_t{d_.progress_deadline_seconds.value_or(0)}}});
  }

  void name_refusals() {
    ReplicaSets all = old_;
    if (latest_) all.insert(all.begin(), latest_);
    for (const ReplicaSetPtr& set : all) {
      const api::WorkloadCondition* failure = find_condition(set->conditions, kReplicaFailure);
      if (failure == nullptr || failure->status != "True") continue;
      add(ReasonCode::kPodsRefused, {{"replica_set", set->metadata.name}, {"message", failure->message}});
    }
  }

  void name_bounds() {
    const std::int64_t latest = latest_ ? latest_->replicas : 0;
    const RolloutBounds bounds = rollout_bounds(d_);
    if (d_.strategy == kRecreate) {
      const std::int64_t remaining = old_pods();
      if (remaining > 0) add(ReasonCode::kOldPodsLeave, {{"pods", remaining}});
      return;
    }
    const std::int64_t wanted = d_.replicas;
    if (latest < wanted && asked_for_ >= wanted + bounds.surge_max) {
      add(ReasonCode::kSurgeReached, {{"pods", asked_for_},
                                      {"pods_max", wanted + bounds.surge_max},
                                      {"pods_wanted", wanted},
                                      {"surge_max", bounds.surge_max}});
    }
    const bool has_old = std::ranges::any_of(old_, [](const ReplicaSetPtr& set) { return set->replicas > 0; });
    const std::int64_t missing = latest - (latest_ ? latest_->status.available_replicas : 0);
    if (has_old && asked_for_ - bounds.available_min - missing <= 0) {
      add(ReasonCode::kUnavailableReached, {{"available_min", bounds.available_min},
                                            {"pods_wanted", wanted},
                                            {"unavailable_max", bounds.unavailable_max},
                                            {"pods_available", available_}});
    }
  }

  bool is_of_latest(const api::Pod& pod) const {
    const api::OwnerReference* owner = api::controller_of(pod.metadata);
    return latest_ && owner != nullptr && owner->uid == latest_->metadata.uid;
  }

  std::int64_t old_pods() const {
    return std::ranges::count_if(pods_,
                                 [this](const PodPtr& pod) { return !is_of_latest(*pod) && !api::is_terminal(*pod); });
  }

  void name_pods() {
    for (const PodPtr& pod : pods_) {
      if (!is_of_latest(*pod) || is_ready(*pod)) continue;
      ++decision_.candidates_total;
      if (decision_.candidates.size() == kPodsNamedMax) continue;
      decision_.candidates.push_back(
          {{"Pod", pod->metadata.ns, pod->metadata.name, pod->metadata.uid},
           {ReasonCode::kPodNotReady, {{"node", pod->spec.node_name}, {"why", why_not_ready(*pod)}}},
           {}});
    }
  }

  const api::Deployment& d_;
  const ReplicaSets& sets_;
  const std::vector<PodPtr>& pods_;
  ReplicaSetPtr latest_;
  ReplicaSets old_;
  std::int64_t asked_for_ = 0;
  std::int64_t available_ = 0;
  policy::Decision decision_;
};

}  // namespace

policy::Decision explain_rollout(const api::Deployment& deployment, const ReplicaSets& sets,
                                 const std::vector<PodPtr>& pods, WallTime now) {
  return Outlook(deployment, sets, pods).decide(now);
}

}  // namespace spillway::workloads
