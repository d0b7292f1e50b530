#include "policy/outlook/job_outlook.h"

#include "api/object/kind_id.h"
#include "policy/workloads/job_failure_policy.h"
#include "policy/workloads/job_plan.h"
#include "policy/workloads/pod_complaint.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace spillway::outlook {

namespace {

using policy::Fact;
using policy::Verdict;
using workloads::PodPtr;

/// States in the order in which pods are named.
enum class JobPodState { kPending, kFailed, kEnding, kRunning };

constexpr std::string_view name_of(JobPodState state) {
  switch (state) {
    case JobPodState::kPending:
      return "pending";
    case JobPodState::kFailed:
      return "failed";
    case JobPodState::kEnding:
      return "ending";
    case JobPodState::kRunning:
      break;
  }
  return "running";
}

WallTime wall_after(WallTime now, Duration left) {
  return std::chrono::time_point_cast<WallTime::duration>(now + left);
}

class JobOutlook : OutlookMaker {
 public:
  JobOutlook(const JobScene& scene, WallTime now) : scene_(scene), job_(scene.job), now_(now) {
    out_.at = now;
    out_.subject = {std::string(api::Job::kKind), job_.metadata.ns, job_.metadata.name, job_.metadata.uid};
  }

  Outlook explain() {
    if (scene_.pods) take_stock();
    if (workloads::is_finished(job_)) {
      say_end();
    } else if (job_.metadata.deletion_timestamp) {
      add(Verdict::kWaits, Code::kBeingDeleted, {});
    } else if (workloads::is_managed_elsewhere(job_)) {
      add(Verdict::kRests, Code::kJobManagedElsewhere, {{"manager", *job_.managed_by}});
    } else {
      say_how_it_goes();
    }
    say_progress();
    say_failure_rules();
    say_future();
    if (!scene_.pods) add(Code::kNotRead, {{"what", "pods"}});
    name_pods();
    return std::move(out_);
  }

 private:
  void take_stock() {
    for (const PodPtr& pod : *scene_.pods) {
      if (job_.selector.matches(pod->metadata.labels)) pods_.push_back(pod);
    }
    for (const PodPtr& pod : pods_) {
      if (const auto state = state_of(*pod)) by_state_[*state].push_back(pod);
    }
    if (!workloads::is_finished(job_) && !workloads::is_managed_elsewhere(job_)) {
      plan_ = workloads::plan_job({job_, pods_, {}, backoff_so_far()}, now_);
    }
  }

  /// The state of a pod; nullopt: the pod has done its work.
  std::optional<JobPodState> state_of(const api::Pod& pod) const {
    if (workloads::is_failed(job_, pod) && api::is_terminal(pod)) return JobPodState::kFailed;
    if (pod.status.phase == "Succeeded") return std::nullopt;
    if (workloads::is_terminating(pod)) return JobPodState::kEnding;
    return pod.status.phase == "Running" ? JobPodState::kRunning : JobPodState::kPending;
  }

  /// The back-off from the pods that were counted before; the plan adds the others. The controller's own memory has the
  /// same value, as long as the pods exist.
  workloads::JobBackoff backoff_so_far() const {
    std::set<std::string> known;
    if (const auto& uncounted = job_.status.uncounted) {
      known.insert(uncounted->succeeded.begin(), uncounted->succeeded.end());
      known.insert(uncounted->failed.begin(), uncounted->failed.end());
    }
    std::vector<PodPtr> succeeded;
    std::vector<PodPtr> failed;
    for (const PodPtr& pod : pods_) {
      if (workloads::is_tracked(*pod) && !known.contains(pod->metadata.uid)) continue;
      if (pod->status.phase == "Succeeded") succeeded.push_back(pod);
      if (workloads::is_failed(job_, *pod)) failed.push_back(pod);
    }
    return workloads::backoff_after({}, succeeded, failed);
  }

  /// The status of the Job, or the one that the controller writes next.
  const api::JobStatus& status() const {
    if (plan_.final_status) return *plan_.final_status;
    return plan_.counted ? *plan_.counted : job_.status;
  }

  std::int64_t count(JobPodState state) const {
    const auto found = by_state_.find(state);
    return found == by_state_.end() ? 0 : static_cast<std::int64_t>(found->second.size());
  }

  // The end of the Job, or the reason why it has not ended.

  void say_end() {
    if (workloads::true_condition(job_.status, workloads::kJobComplete) != nullptr) {
      std::vector<Fact> facts{{"succeeded", std::int64_t{job_.status.succeeded}}};
      const auto& [begin, end] = std::pair(job_.status.start_time, job_.status.completion_time);
      if (begin && end && *end >= *begin) {
        facts.push_back(
            {"took_seconds", std::int64_t{std::chrono::floor<std::chrono::seconds>(*end - *begin).count()}});
      }
      return add(Verdict::kRests, Code::kJobComplete, std::move(facts));
    }
    const api::JobCondition* failed = workloads::true_condition(job_.status, workloads::kJobFailed);
    add(Verdict::kRefuses, Code::kJobFailed, end_facts(*failed));
  }

  static std::vector<Fact> end_facts(const api::JobCondition& condition) {
    std::vector<Fact> facts{{"reason", condition.reason}};
    if (!condition.message.empty()) facts.push_back({"message", condition.message});
    return facts;
  }

  /// The condition that announces the Job's end before its pods have ended.
  const api::JobCondition* end_ahead() const {
    const api::JobStatus& status = this->status();
    for (const std::string_view type : {workloads::kJobFailureTarget, workloads::kJobSuccessCriteriaMet}) {
      if (const auto* condition = workloads::true_condition(status, type)) return condition;
    }
    return nullptr;
  }

  void say_how_it_goes() {
    const bool unseen = !job_.status.start_time && job_.status.conditions.empty();
    if (const auto* ahead = end_ahead()) return add(Verdict::kActs, Code::kJobEnding, end_facts(*ahead));
    if (job_.suspend) return add(Verdict::kWaits, Code::kJobSuspended, {});
    if (unseen) return add(Verdict::kWaits, Code::kJobUnseen, {});
    if (job_.parallelism == 0) return add(Verdict::kWaits, Code::kJobNoParallelism, {});
    if (scene_.pods) return say_pods();
    const std::int64_t active = job_.status.active;
    if (active > 0) return add(Verdict::kActs, Code::kJobRuns, {{"running", active}});
    add(Verdict::kWaits, Code::kJobRests, {});
  }

  void say_pods() {
    const bool refused = is_refused();
    if (refused)
      add(Verdict::kWaits, Code::kJobPodsRefused,
          {{"message", scene_.refused->message}, time_fact("last_at", scene_.refused->at)});
    if (plan_.next_pod && *plan_.next_pod > Duration::zero()) {
      std::vector<Fact> facts;
      add_instant(facts, "due", wall_after(now_, *plan_.next_pod), now_);
      if (!job_.backoff_limit_per_index) facts.push_back({"failures_in_a_row", plan_.backoff.failures});
      add(Verdict::kWaits, Code::kJobBackOff, std::move(facts));
    }
    if (const std::int64_t running = count(JobPodState::kRunning); running > 0) {
      return add(Verdict::kActs, Code::kJobRuns, {{"running", running}});
    }
    if (const std::int64_t pending = count(JobPodState::kPending); pending > 0) {
      const api::Pod& first = *by_state_.at(JobPodState::kPending).front();
      return add(Verdict::kWaits, Code::kJobPodsPending,
                 {{"pods", pending}, {"pod", first.metadata.name}, {"why", workloads::why_not_ready(first)}});
    }
    if (!out_.remarks.empty()) return;
    if (const std::int64_t ending = count(JobPodState::kEnding); ending > 0) {
      return add(Verdict::kWaits, Code::kJobPodsLeave, {{"pods", ending}});
    }
    if (!plan_.created.empty()) {
      return add(Verdict::kActs, Code::kJobMakesPods, {{"pods", static_cast<std::int64_t>(plan_.created.size())}});
    }
    add(Verdict::kWaits, Code::kJobRests, {});
  }

  /// True if a pod is missing and none was made since the failure.
  bool is_refused() const {
    if (!scene_.refused || plan_.created.empty()) return false;
    return std::ranges::none_of(pods_, [this](const PodPtr& pod) {
      return pod->metadata.creation_timestamp && *pod->metadata.creation_timestamp > scene_.refused->at;
    });
  }

  // Further remarks.

  void say_progress() {
    const api::JobStatus& status = this->status();
    std::vector<Fact> facts{{"succeeded", std::int64_t{status.succeeded}}};
    if (job_.completions) facts.push_back({"completions", std::int64_t{*job_.completions}});
    if (scene_.pods && !workloads::is_finished(job_)) {
      facts.push_back({"running", count(JobPodState::kRunning)});
      facts.push_back({"pending", count(JobPodState::kPending)});
    }
    facts.push_back({"failed", std::int64_t{status.failed}});
    if (job_.backoff_limit && !job_.backoff_limit_per_index) {
      facts.push_back({"backoff_limit", std::int64_t{*job_.backoff_limit}});
    }
    if (job_.backoff_limit_per_index) {
      facts.push_back({"backoff_limit_per_index", std::int64_t{*job_.backoff_limit_per_index}});
    }
    add(Code::kJobProgress, std::move(facts));
    if (!workloads::is_indexed(job_)) return;
    std::vector<Fact> indexes{{"completed", status.completed_indexes.empty() ? "none" : status.completed_indexes}};
    if (status.failed_indexes && !status.failed_indexes->empty()) indexes.push_back({"failed", *status.failed_indexes});
    add(Code::kJobIndexes, std::move(indexes));
  }

  /// Failures that matched a rule of podFailurePolicy, by the rule's action.
  void say_failure_rules() {
    if (!job_.pod_failure_policy) return;
    std::map<std::string, std::int64_t> pods;
    for (const PodPtr& pod : pods_) {
      if (!workloads::is_failed(job_, *pod)) continue;
      const auto match = workloads::match_pod_failure(job_.pod_failure_policy, *pod);
      if (match.action) ++pods[*match.action];
    }
    for (const auto& [action, times] : pods) add(Code::kJobFailureRule, {{"pods", times}, {"action", action}});
  }

  void say_future() {
    if (plan_.deadline && *plan_.deadline > Duration::zero()) {
      std::vector<Fact> facts;
      add_instant(facts, "due", wall_after(now_, *plan_.deadline), now_);
      add(Code::kJobDeadline, std::move(facts));
    }
    const bool finished = workloads::is_finished(job_);
    if (const auto left = workloads::time_to_live(job_, now_)) {
      std::vector<Fact> facts;
      add_instant(facts, "due", wall_after(now_, *left), now_);
      add(Code::kJobLeavesAt, std::move(facts));
    } else if (job_.ttl_seconds_after_finished && !finished) {
      add(Code::kJobLeavesAfter, {{"ttl_seconds", std::int64_t{*job_.ttl_seconds_after_finished}}});
    } else if (finished && !job_.metadata.deletion_timestamp) {
      const api::OwnerReference* owner = api::controller_of(job_.metadata);
      const bool of_cron_job = owner != nullptr && api::kind_of(*owner) == api::kind_of<api::CronJob>();
      if (of_cron_job) return add(Code::kJobKeptByHistory, {{"cron_job", owner->name}});
      add(Code::kJobStays, {});
    }
  }

  void name_pods() {
    Part part{.name = "pods", .rows = {}, .total = 0};
    for (const auto& [state, pods] : by_state_) {
      for (const PodPtr& pod : pods) {
        ++part.total;
        if (part.rows.size() < kRowsMax) part.rows.push_back(row_of(*pod, state));
      }
    }
    if (part.total > 0) out_.parts.push_back(std::move(part));
  }

  Row row_of(const api::Pod& pod, JobPodState state) const {
    Row row{pod.metadata.name, std::string(name_of(state)), {{"node", pod.spec.node_name}}};
    if (state == JobPodState::kPending) row.facts.push_back({"why", workloads::why_not_ready(pod)});
    if (state != JobPodState::kFailed) return row;
    row.facts.push_back({"why", workloads::why_failed(pod)});
    const auto match = workloads::match_pod_failure(job_.pod_failure_policy, pod);
    if (match.action) row.facts.push_back({"rule", *match.action});
    return row;
  }

  const JobScene& scene_;
  const api::Job& job_;
  WallTime now_;
  std::vector<PodPtr> pods_;
  std::map<JobPodState, std::vector<PodPtr>> by_state_;
  workloads::JobPlan plan_;
};

}  // namespace

Outlook explain_job(const JobScene& scene, WallTime now) {
  return JobOutlook(scene, now).explain();
}

}  // namespace spillway::outlook
