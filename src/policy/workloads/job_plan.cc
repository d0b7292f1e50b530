#include "policy/workloads/job_plan.h"

#include "policy/workloads/job_failure_policy.h"
#include "policy/workloads/job_indexes.h"
#include "policy/workloads/surplus_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace spillway::workloads {

namespace {

constexpr std::size_t kPodsMax = 500;  // as upstream: creations and deletions in one sync
constexpr Duration kDelayMin = seconds(1);

constexpr std::string_view kNormal = "Normal";
constexpr std::string_view kWarning = "Warning";

void keep_tracked(std::vector<std::string>& uids, const std::set<std::string>& tracked, std::int32_t& counter) {
  counter += static_cast<std::int32_t>(
      std::erase_if(uids, [&tracked](const std::string& uid) { return !tracked.contains(uid); }));
}

class JobPlanner {
 public:
  JobPlanner(const JobView& view, WallTime now) : view_(view), job_(view.job), status_(view.job.status), now_(now) {}

  JobPlan plan() {
    if (!status_.uncounted) status_.uncounted.emplace();
    take_stock();
    if (!status_.start_time && !job_.suspend) status_.start_time = now_;
    decide_end();
    if (is_indexed(job_)) evaluate_indexes();
    if (end_) {
      end_active_pods();
    } else {
      carry_on();
    }
    needs_write_ = needs_write_ || active_count_ != status_.active || ready_ != status_.ready ||
                   terminating_ != status_.terminating;
    status_.active = active_count_;
    status_.ready = ready_;
    status_.terminating = terminating_;
    count_ended();
    return std::move(plan_);
  }

 private:
  struct End {
    std::string_view type;  // Failed, SuccessCriteriaMet
    std::string reason;
    std::string message;
  };

  // Counts of the present pods.

  void take_stock() {
    for (const PodPtr& pod : view_.pods) {
      if (is_active(*pod)) active_.push_back(pod);
      if (is_terminating(*pod)) ++terminating_;
    }
    active_count_ = static_cast<std::int32_t>(active_.size());
    ready_ =
        static_cast<std::int32_t>(std::ranges::count_if(active_, [](const PodPtr& pod) { return is_ready(*pod); }));
    const api::UncountedPods& uncounted = *status_.uncounted;
    known_succeeded_ = {uncounted.succeeded.begin(), uncounted.succeeded.end()};
    known_failed_ = {uncounted.failed.begin(), uncounted.failed.end()};
    const std::vector<PodPtr> succeeded =
        newly_ended(known_succeeded_, [](const api::Pod& pod) { return pod.status.phase == "Succeeded"; });
    const std::vector<PodPtr> failed =
        newly_ended(known_failed_, [this](const api::Pod& pod) { return is_failed(job_, pod); });
    succeeded_ = status_.succeeded + static_cast<std::int64_t>(succeeded.size() + known_succeeded_.size());
    failed_ = status_.failed + static_cast<std::int64_t>(known_failed_.size()) +
              std::ranges::count_if(failed, [this](const PodPtr& pod) {
                return match_pod_failure(job_.pod_failure_policy, *pod).counts;
              });
    plan_.backoff = backoff_after(view_.backoff, succeeded, failed);
  }

  /// True if the pod has its finalizer, and, in an Indexed Job, a wanted index.
  bool is_valid(const api::Pod& pod) const {
    if (!is_tracked(pod) || view_.released.contains(pod.metadata.uid)) return false;
    return !is_indexed(job_) || wanted_index(pod);
  }

  std::optional<std::int32_t> wanted_index(const api::Pod& pod) const {
    const auto index = completion_index(pod);
    return index && *index < completions() ? index : std::nullopt;
  }

  std::int32_t completions() const { return job_.completions.value_or(0); }

  std::int32_t backoff_limit() const { return job_.backoff_limit.value_or(0); }

  std::vector<PodPtr> newly_ended(const std::set<std::string>& known,
                                  const std::function<bool(const api::Pod&)>& has_ended) const {
    std::vector<PodPtr> pods;
    for (const PodPtr& pod : view_.pods) {
      if (is_valid(*pod) && !known.contains(pod->metadata.uid) && has_ended(*pod)) pods.push_back(pod);
    }
    return pods;
  }

  // The Job's end.

  void fail(std::string_view reason, std::string message) {
    end_ = End{kJobFailed, std::string(reason), std::move(message)};
  }

  void decide_end() {
    if (const auto* criteria = true_condition(status_, kJobSuccessCriteriaMet)) {
      end_ = End{kJobSuccessCriteriaMet, criteria->reason, criteria->message};
    } else if (const auto target = std::ranges::find(status_.conditions, kJobFailureTarget, &api::JobCondition::type);
               target != status_.conditions.end()) {
      fail(target->reason, target->message);
    } else if (const auto message = failing_pod()) {
      fail("PodFailurePolicy", *message);
    } else if (failed_ > backoff_limit() || restarted_too_often()) {
      fail("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    } else if (const auto left = until_deadline()) {
      if (*left <= Duration::zero()) {
        fail("DeadlineExceeded", "Job was active longer than specified deadline");
      } else {
        plan_.requeue_after.push_back(*left);
        plan_.deadline = left;
      }
    }
  }

  std::optional<std::string> failing_pod() const {
    if (!job_.pod_failure_policy) return std::nullopt;
    for (const PodPtr& pod : view_.pods) {
      if (!is_failed(job_, *pod)) continue;
      PodFailureMatch match = match_pod_failure(job_.pod_failure_policy, *pod);
      if (match.job_fails) return std::move(match.job_fails);
    }
    return std::nullopt;
  }

  bool restarted_too_often() const {
    if (job_.pod_template.spec.string_at({"restartPolicy"}) != "OnFailure") return false;
    std::int64_t restarts = 0;
    for (const PodPtr& pod : view_.pods) {
      if (pod->status.phase != "Running" && pod->status.phase != "Pending") continue;
      for (const auto* list : {&pod->status.init_container_statuses, &pod->status.container_statuses}) {
        for (const api::ContainerStatus& container : *list) restarts += container.restart_count;
      }
    }
    return backoff_limit() == 0 ? restarts > 0 : restarts >= backoff_limit();
  }

  std::optional<Duration> until_deadline() const {
    if (!job_.active_deadline_seconds || job_.suspend || !status_.start_time) return std::nullopt;
    const auto allowed = std::min<std::int64_t>(*job_.active_deadline_seconds,
                                                std::chrono::floor<std::chrono::seconds>(kTimeLeftMax).count());
    return std::clamp(*status_.start_time + std::chrono::seconds(allowed) - now_, -kTimeLeftMax, kTimeLeftMax);
  }

  void evaluate_indexes() {
    before_ = JobIndexes::parse(status_.completed_indexes, completions());
    std::set<std::int32_t> succeeded;
    std::set<std::int32_t> failed;
    for (const PodPtr& pod : view_.pods) {
      const auto index = wanted_index(*pod);
      if (!index || !is_tracked(*pod)) continue;
      if (pod->status.phase == "Succeeded") succeeded.insert(*index);
      if (job_.backoff_limit_per_index && fails_index(*pod)) failed.insert(*index);
    }
    indexes_ = before_.with(succeeded);
    succeeded_ = indexes_.total();
    if (job_.backoff_limit_per_index) evaluate_failed_indexes(failed);
    if (end_) return;
    if (const auto rule = fulfilled_success_rule(job_.success_policy, completions(), indexes_)) {
      end_ = End{kJobSuccessCriteriaMet, "SuccessPolicy", fmt::format("Matched rules at index {}", *rule)};
    }
  }

  void evaluate_failed_indexes(const std::set<std::int32_t>& failed) {
    failed_indexes_ = JobIndexes::parse(status_.failed_indexes.value_or(""), completions()).with(failed);
    const std::int64_t total = failed_indexes_->total();
    if (!end_ && job_.max_failed_indexes && total > *job_.max_failed_indexes) {
      fail("MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes");
    } else if (!end_ && total > 0 && total + indexes_.total() >= completions()) {
      fail("FailedIndexes", "Job has failed indexes");
    }
    find_replaceable();
  }

  bool fails_index(const api::Pod& pod) const {
    if (!is_failed(job_, pod)) return false;
    const PodFailureMatch match = match_pod_failure(job_.pod_failure_policy, pod);
    if (match.action == kFailIndex) return true;
    return match.counts && index_failures(pod) >= *job_.backoff_limit_per_index;
  }

  /// For each index to be retried, the failed pod that carries the index's number of failures. It stays until its
  /// replacement exists.
  void find_replaceable() {
    const std::set<std::int32_t> active = indexes_of(active_);
    for (const PodPtr& pod : view_.pods) {
      if (!is_valid(*pod) || !is_failed(job_, *pod)) continue;
      const std::int32_t index = *wanted_index(*pod);
      if (indexes_.has(index) || failed_indexes_->has(index) || active.contains(index)) continue;
      PodPtr& last = replaceable_[index];
      if (!last || (all_failures(*last) <= all_failures(*pod) && finished_at(*last) <= finished_at(*pod))) last = pod;
    }
  }

  static std::int64_t all_failures(const api::Pod& pod) { return index_failures(pod) + ignored_index_failures(pod); }

  static std::set<std::int32_t> indexes_of(const std::vector<PodPtr>& pods) {
    std::set<std::int32_t> indexes;
    for (const PodPtr& pod : pods) {
      if (const auto index = completion_index(*pod)) indexes.insert(*index);
    }
    return indexes;
  }

  // Pods to create and delete.

  void count_terminating(const std::vector<PodPtr>& pods) {
    for (const PodPtr& pod : pods) {
      --active_count_;
      ++terminating_;
      if (is_ready(*pod)) --ready_;
    }
  }

  void end_active_pods() {
    plan_.removed = active_;
    count_terminating(active_);
    if (view_.cache == JobCache::kBehind) end_.reset();  // the cache may lack pods
  }

  void carry_on() {
    const bool managed = view_.cache == JobCache::kCurrent && !job_.metadata.deletion_timestamp;
    if (managed) manage();
    if (is_complete()) {
      end_ = End{kJobSuccessCriteriaMet, "CompletionsReached", "Reached expected number of succeeded pods"};
    } else if (managed) {
      mark_suspension();
    }
  }

  bool is_complete() const {
    return active_count_ == 0 && (job_.completions ? succeeded_ >= *job_.completions : succeeded_ > 0);
  }

  void mark_suspension() {
    const auto present = std::ranges::find(status_.conditions, kJobSuspended, &api::JobCondition::type);
    const bool suspended = present != status_.conditions.end() && present->status == "True";
    if (suspended == job_.suspend) return;
    needs_write_ = true;
    if (job_.suspend) {
      set_condition(kJobSuspended, "True", "JobSuspended", "Job suspended");
      return record_event(kNormal, "Suspended", "Job suspended");
    }
    set_condition(kJobSuspended, "False", "JobResumed", "Job resumed");
    record_event(kNormal, "Resumed", "Job resumed");
    status_.start_time = now_;
  }

  std::int64_t wanted_active() const {
    const std::int64_t parallelism = job_.parallelism.value_or(1);
    if (!job_.completions) return succeeded_ > 0 ? active_count_ : parallelism;
    return std::clamp<std::int64_t>(*job_.completions - succeeded_, 0, std::max<std::int64_t>(parallelism, 0));
  }

  void manage() {
    plan_.action = JobAction::kPodsDeleted;
    if (job_.suspend) return drop(surplus(active_.size()), active_.size());
    const std::int64_t wanted = wanted_active();
    std::vector<PodPtr> too_many = surplus(static_cast<std::size_t>(std::max<std::int64_t>(active_count_ - wanted, 0)));
    if (!too_many.empty()) return drop(std::move(too_many), kPodsMax);
    plan_.action = JobAction::kTracking;
    const std::int64_t terminating = replaces_only_failed(job_) ? terminating_ : 0;
    if (const std::int64_t missing = wanted - terminating - active_count_; missing > 0) {
      plan_.action = JobAction::kPodsCreated;
      create(std::min<std::size_t>(static_cast<std::size_t>(missing), kPodsMax));
    }
  }

  void drop(std::vector<PodPtr> pods, std::size_t most) {
    if (pods.size() > most) pods.resize(most);
    count_terminating(pods);
    plan_.dropped = std::move(pods);
  }

  /// At least so many of the active pods: all without an index of their own, then those with the least progress.
  std::vector<PodPtr> surplus(std::size_t least) const {
    std::vector<PodPtr> going;
    std::vector<PodPtr> staying = by_rank(active_);
    if (is_indexed(job_)) staying = without_duplicates(staying, going);
    if (going.size() < least) {
      const auto more = static_cast<std::ptrdiff_t>(std::min(least - going.size(), staying.size()));
      going.insert(going.end(), staying.begin(), staying.begin() + more);
    }
    return going;
  }

  static std::vector<PodPtr> by_rank(std::vector<PodPtr> pods) {
    std::ranges::sort(pods, {}, [](const PodPtr& pod) { return surplus_rank(*pod, 0); });
    return pods;
  }

  /// Keeps, for each index, the pod that is farthest along.
  std::vector<PodPtr> without_duplicates(const std::vector<PodPtr>& ranked, std::vector<PodPtr>& going) const {
    std::map<std::int32_t, std::string> kept;
    for (const PodPtr& pod : ranked) {
      if (const auto index = wanted_index(*pod)) kept[*index] = pod->metadata.uid;
    }
    std::vector<PodPtr> staying;
    for (const PodPtr& pod : ranked) {
      const auto index = wanted_index(*pod);
      (index && kept[*index] == pod->metadata.uid ? staying : going).push_back(pod);
    }
    return staying;
  }

  void create(std::size_t count) {
    if (!job_.backoff_limit_per_index) {
      if (const Duration left = backoff_left(plan_.backoff, now_); left > Duration::zero()) return wait(left);
    }
    if (!is_indexed(job_)) {
      plan_.created.resize(count);
    } else {
      create_indexes(count);
    }
    active_count_ += static_cast<std::int32_t>(plan_.created.size());
  }

  /// ✗ As upstream, the status has no active pod for that moment.
  void wait(Duration left) {
    plan_.requeue_after.push_back(std::max(left, kDelayMin));
    plan_.next_pod = left;
    active_count_ = 0;
  }

  void create_indexes(std::size_t count) {
    JobIndexes taken = indexes_.with(indexes_of(active_));
    if (replaces_only_failed(job_)) {
      std::vector<PodPtr> terminating;
      std::ranges::copy_if(view_.pods, std::back_inserter(terminating),
                           [](const PodPtr& p) { return is_terminating(*p); });
      taken = taken.with(indexes_of(terminating));
    }
    if (failed_indexes_) taken = taken.with(*failed_indexes_);
    std::optional<Duration> next;
    for (const std::int32_t index : taken.lowest_missing(completions(), count)) {
      const auto before = replaceable_.find(index);
      const PodPtr replaced = before != replaceable_.end() ? before->second : nullptr;
      const Duration left = replaced ? index_wait(*replaced) : Duration::zero();
      if (left > Duration::zero()) {
        next = std::min(next.value_or(left), left);
      } else {
        plan_.created.push_back(replacement(index, replaced));
      }
    }
    if (plan_.created.empty() && next) wait(*next);
  }

  Duration index_wait(const api::Pod& failed) const {
    return backoff_left({all_failures(failed) + 1, finished_at(failed)}, now_);
  }

  JobPod replacement(std::int32_t index, const PodPtr& replaced) const {
    if (!job_.backoff_limit_per_index) return {index, std::nullopt, 0};
    if (!replaced) return {index, 0, 0};
    const bool counts = match_pod_failure(job_.pod_failure_policy, *replaced).counts;
    return {index, index_failures(*replaced) + (counts ? 1 : 0), ignored_index_failures(*replaced) + (counts ? 0 : 1)};
  }

  // The status.

  void record_event(std::string_view type, std::string_view reason, std::string_view message) {
    plan_.events.push_back({type, std::string(reason), std::string(message)});
  }

  void set_condition(std::string_view type, std::string_view value, std::string_view reason, std::string_view message) {
    api::JobCondition condition{std::string(type),   std::string(value),  now_, now_,
                                std::string(reason), std::string(message)};
    const auto present = std::ranges::find(status_.conditions, type, &api::JobCondition::type);
    if (present == status_.conditions.end()) {
      status_.conditions.push_back(std::move(condition));
    } else if (present->status != value || present->reason != reason || present->message != message) {
      *present = std::move(condition);
    }
  }

  bool may_release(const api::Pod& pod) const {
    if (job_.metadata.deletion_timestamp || end_ || pod.status.phase == "Succeeded") return true;
    if (!is_failed(job_, pod)) return false;
    const auto index = completion_index(pod);
    const auto kept = index ? replaceable_.find(*index) : replaceable_.end();
    return kept == replaceable_.end() || kept->second->metadata.uid != pod.metadata.uid;
  }

  void count_ended() {
    std::set<std::string> tracked;
    std::vector<PodPtr> pods;
    for (const PodPtr& pod : view_.pods) {
      if (!is_tracked(*pod) || view_.released.contains(pod->metadata.uid)) continue;
      tracked.insert(pod->metadata.uid);
      pods.push_back(pod);
    }
    if (is_indexed(job_)) {
      std::ranges::stable_sort(pods, {}, [](const PodPtr& pod) { return completion_index(*pod).value_or(-1); });
    }
    count_untracked(tracked);
    const bool all = count(pods);
    if (is_indexed(job_)) write_indexes();
    mark_end();
    if (needs_write_) plan_.counted = status_;
    const bool again = needs_write_;
    needs_write_ = false;
    for (const PodPtr& pod : plan_.released) tracked.erase(pod->metadata.uid);
    count_untracked(tracked);
    if (all) finish();
    if (needs_write_) plan_.final_status = status_;
    // ✗ Upstream forgets the failures that it counted when it writes nothing.
    if (!again) plan_.backoff = view_.backoff;
  }

  /// Moves pods that have lost their finalizer into the counters.
  void count_untracked(const std::set<std::string>& tracked) {
    api::UncountedPods& uncounted = *status_.uncounted;
    const std::size_t before = uncounted.succeeded.size() + uncounted.failed.size();
    keep_tracked(uncounted.succeeded, tracked, status_.succeeded);
    keep_tracked(uncounted.failed, tracked, status_.failed);
    if (uncounted.succeeded.size() + uncounted.failed.size() != before) needs_write_ = true;
  }

  /// False: not all pods could be counted.
  bool count(const std::vector<PodPtr>& pods) {
    api::UncountedPods& uncounted = *status_.uncounted;
    for (const PodPtr& pod : pods) {
      if (!may_release(*pod)) continue;
      plan_.released.push_back(pod);
      if (pod->status.phase == "Succeeded" && !known_failed_.contains(pod->metadata.uid)) {
        count_success(*pod);
      } else if (is_failed(job_, *pod) || (end_ && end_->type == kJobFailed)) {
        count_failure(*pod);
      }
      if (new_indexes_.size() + uncounted.succeeded.size() + uncounted.failed.size() >= kPodsMax) return false;
    }
    return true;
  }

  void count_success(const api::Pod& pod) {
    if (!is_indexed(job_)) {
      if (known_succeeded_.contains(pod.metadata.uid)) return;
      status_.uncounted->succeeded.push_back(pod.metadata.uid);
    } else {
      const auto index = wanted_index(pod);
      if (!index || before_.has(*index)) return;
      new_indexes_.insert(*index);
    }
    needs_write_ = true;
  }

  void count_failure(const api::Pod& pod) {
    if (known_failed_.contains(pod.metadata.uid) || (is_indexed(job_) && !wanted_index(pod))) return;
    if (!match_pod_failure(job_.pod_failure_policy, pod).counts) return;
    status_.uncounted->failed.push_back(pod.metadata.uid);
    needs_write_ = true;
  }

  void write_indexes() {
    const JobIndexes succeeded = before_.with(new_indexes_);
    std::optional<std::string> failed;
    if (failed_indexes_) failed = failed_indexes_->text();
    needs_write_ = needs_write_ || succeeded.text() != status_.completed_indexes || failed != status_.failed_indexes;
    status_.completed_indexes = succeeded.text();
    status_.succeeded = static_cast<std::int32_t>(succeeded.total());
    status_.failed_indexes = failed;
  }

  /// Announces the Job's end in a condition before the pods that decided it may be deleted.
  void mark_end() {
    if (!end_) return;
    const std::string_view type = end_->type == kJobFailed ? kJobFailureTarget : kJobSuccessCriteriaMet;
    const auto present = std::ranges::find(status_.conditions, type, &api::JobCondition::type);
    if (present != status_.conditions.end()) return;
    set_condition(type, "True", end_->reason, end_->message);
    needs_write_ = true;
  }

  void finish() {
    const api::UncountedPods& uncounted = *status_.uncounted;
    if (!end_ || !uncounted.succeeded.empty() || !uncounted.failed.empty() || terminating_ > 0) return;
    needs_write_ = true;
    if (end_->type == kJobFailed) {
      set_condition(kJobFailed, "True", end_->reason, end_->message);
      plan_.final_events.push_back({kWarning, end_->reason, end_->message});
      return;
    }
    set_condition(kJobComplete, "True", end_->reason, end_->message);
    status_.completion_time = now_;
    if (job_.completions && status_.succeeded > *job_.completions) {
      plan_.final_events.push_back(
          {kWarning, "TooManySucceededPods", "Too many succeeded pods running after completion count reached"});
    }
    plan_.final_events.push_back({kNormal, "Completed", "Job completed"});
  }

  const JobView& view_;
  const api::Job& job_;
  api::JobStatus status_;  // the new status
  WallTime now_;
  JobPlan plan_;
  std::vector<PodPtr> active_;
  std::int32_t active_count_ = 0;
  std::int32_t ready_ = 0;
  std::int32_t terminating_ = 0;
  std::set<std::string> known_succeeded_;  // uids that the status has, and no counter yet
  std::set<std::string> known_failed_;
  std::int64_t succeeded_ = 0;  // with those that are not in the status yet
  std::int64_t failed_ = 0;
  std::optional<End> end_;
  JobIndexes before_;   // indexes in the present status
  JobIndexes indexes_;  // with those of pods that have ended since
  std::optional<JobIndexes> failed_indexes_;
  std::map<std::int32_t, PodPtr> replaceable_;
  std::set<std::int32_t> new_indexes_;
  bool needs_write_ = false;
};

constexpr std::string_view kIndexVariable = "JOB_COMPLETION_INDEX";

void add_index_variable(api::Json& pod_spec, std::string_view containers) {
  api::Json* list = pod_spec.find(containers);
  if (list == nullptr || list->if_array() == nullptr) return;
  for (api::Json& container : *list->if_array()) {
    api::Json& env = container["env"];
    if (env.if_array() == nullptr) env = api::Json::array();
    const bool given = std::ranges::any_of(
        *env.if_array(), [](const api::Json& variable) { return variable.string_at({"name"}) == kIndexVariable; });
    if (given) continue;
    api::Json field = api::Json::object({{"fieldPath", fmt::format("metadata.labels['{}']", kCompletionIndex)}});
    env.if_array()->push_back(api::Json::object(
        {{"name", kIndexVariable}, {"valueFrom", api::Json::object({{"fieldRef", std::move(field)}})}}));
  }
}

api::Json object_of(const api::StringMap& map) {
  api::Json object = api::Json::object();
  for (const auto& [key, value] : map) object[key] = value;
  return object;
}

/// A generated name has five more characters, and at most 63.
std::string pod_name_prefix(const api::Job& job, std::optional<std::int32_t> index) {
  constexpr std::size_t kPrefixMax = 58;
  const std::string end = index ? fmt::format("-{}-", *index) : "-";
  return job.metadata.name.substr(0, kPrefixMax - std::min(kPrefixMax, end.size())) + end;
}

}  // namespace

JobPlan plan_job(const JobView& view, WallTime now) {
  return JobPlanner(view, now).plan();
}

api::Json job_pod_document(const api::Job& job, const JobPod& pod) {
  api::StringMap labels = job.pod_template.labels;
  api::StringMap annotations = job.pod_template.annotations;
  api::Json finalizers = api::Json::array();
  if (const api::Json* given = job.pod_template.metadata.find("finalizers"); given != nullptr && given->is_array()) {
    finalizers = *given;
  }
  if (std::ranges::find(*finalizers.if_array(), api::Json(kJobTracking)) == finalizers.if_array()->end()) {
    finalizers.if_array()->push_back(kJobTracking);
  }
  api::Json spec = job.pod_template.spec;
  if (pod.index) {
    const std::string index = std::to_string(*pod.index);
    labels[std::string(kCompletionIndex)] = index;
    annotations[std::string(kCompletionIndex)] = index;
    if (pod.failures) annotations[std::string(kIndexFailures)] = std::to_string(*pod.failures);
    if (pod.ignored_failures > 0) {
      annotations[std::string(kIndexIgnoredFailures)] = std::to_string(pod.ignored_failures);
    }
    spec["hostname"] = fmt::format("{}-{}", job.metadata.name, index);
    add_index_variable(spec, "initContainers");
    add_index_variable(spec, "containers");
  }
  return api::Json::object({{"apiVersion", "v1"},
                            {"kind", "Pod"},
                            {"metadata", api::Json::object({{"generateName", pod_name_prefix(job, pod.index)},
                                                            {"namespace", job.metadata.ns},
                                                            {"labels", object_of(labels)},
                                                            {"annotations", object_of(annotations)},
                                                            {"finalizers", std::move(finalizers)}})},
                            {"spec", std::move(spec)}});
}

}  // namespace spillway::workloads
