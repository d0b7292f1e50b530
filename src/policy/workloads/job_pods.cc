#include "policy/workloads/job_pods.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace spillway::workloads {

namespace {

constexpr Duration kBackoffFirst = seconds(10);  // as upstream; doubled after each failure
constexpr Duration kBackoffMax = minutes(10);    // as upstream

std::optional<std::int64_t> number_of(const api::Pod& pod, std::string_view annotation) {
  const auto found = pod.metadata.annotations.find(annotation);
  if (found == pod.metadata.annotations.end()) return std::nullopt;
  const std::string& text = found->second;
  std::int64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// The end of the last container, sidecars included; nullopt: one of them has none.
std::optional<WallTime> containers_ended(const api::Pod& pod) {
  std::optional<WallTime> last;
  const auto take = [&last](const api::ContainerStatus& container) {
    const auto& ended = container.state.terminated;
    if (!ended || !ended->finished_at) return false;
    last = std::max(last.value_or(*ended->finished_at), *ended->finished_at);
    return true;
  };
  if (!std::ranges::all_of(pod.status.container_statuses, take)) return std::nullopt;
  for (const api::ContainerStatus& container : pod.status.init_container_statuses) {
    const auto init = std::ranges::find(pod.spec.init_containers, container.name, &api::Container::name);
    if (init == pod.spec.init_containers.end() || !api::is_sidecar(*init)) continue;
    if (!take(container)) return std::nullopt;
  }
  return last;
}

void sort_by_end(std::vector<PodPtr>& pods) {
  std::ranges::stable_sort(pods, {}, [](const PodPtr& pod) { return finished_at(*pod); });
}

}  // namespace

bool is_finished(const api::Job& job) {
  return true_condition(job.status, kJobComplete) != nullptr || true_condition(job.status, kJobFailed) != nullptr;
}

const api::JobCondition* true_condition(const api::JobStatus& status, std::string_view type) {
  const auto found = std::ranges::find(status.conditions, type, &api::JobCondition::type);
  return found != status.conditions.end() && found->status == "True" ? &*found : nullptr;
}

std::optional<Duration> time_to_live(const api::Job& job, WallTime now) {
  if (!job.ttl_seconds_after_finished || job.metadata.deletion_timestamp) return std::nullopt;
  const api::JobCondition* end = true_condition(job.status, kJobComplete);
  if (end == nullptr) end = true_condition(job.status, kJobFailed);
  if (end == nullptr || !end->last_transition_time) return std::nullopt;
  const WallTime::duration left =
      *end->last_transition_time + std::chrono::seconds(*job.ttl_seconds_after_finished) - now;
  return std::clamp(left, WallTime::duration::zero(), kTimeLeftMax);
}

bool is_indexed(const api::Job& job) {
  return job.completion_mode == "Indexed";
}

bool replaces_only_failed(const api::Job& job) {
  return job.pod_replacement_policy == "Failed" || job.pod_failure_policy.has_value();
}

bool is_managed_elsewhere(const api::Job& job) {
  return job.managed_by && *job.managed_by != kJobController;
}

bool is_tracked(const api::Pod& pod) {
  return std::ranges::find(pod.metadata.finalizers, kJobTracking) != pod.metadata.finalizers.end();
}

std::optional<std::int32_t> completion_index(const api::Pod& pod) {
  const auto index = number_of(pod, kCompletionIndex);
  if (!index || *index > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<std::int32_t>(*index);
}

bool is_failed(const api::Job& job, const api::Pod& pod) {
  if (pod.status.phase == "Failed") return true;
  if (replaces_only_failed(job)) return false;
  return pod.metadata.deletion_timestamp && pod.status.phase != "Succeeded";
}

bool is_terminating(const api::Pod& pod) {
  return pod.metadata.deletion_timestamp && !api::is_terminal(pod);
}

std::int64_t index_failures(const api::Pod& pod) {
  return number_of(pod, kIndexFailures).value_or(0);
}

std::int64_t ignored_index_failures(const api::Pod& pod) {
  return number_of(pod, kIndexIgnoredFailures).value_or(0);
}

WallTime finished_at(const api::Pod& pod) {
  if (const auto ended = containers_ended(pod)) return *ended;
  const api::PodCondition* ready = api::find_condition(pod.status.conditions, "Ready");
  if (ready != nullptr && ready->status == "False" && ready->last_transition_time) return *ready->last_transition_time;
  if (pod.metadata.deletion_timestamp) {
    return *pod.metadata.deletion_timestamp - seconds(pod.metadata.deletion_grace_period_seconds.value_or(0));
  }
  return pod.metadata.creation_timestamp.value_or(WallTime());
}

JobBackoff backoff_after(const JobBackoff& before, const std::vector<PodPtr>& succeeded,
                         const std::vector<PodPtr>& failed) {
  if (succeeded.empty() && failed.empty()) return before;
  std::vector<PodPtr> ended = failed;
  sort_by_end(ended);
  if (succeeded.empty()) {
    return {before.failures + static_cast<std::int64_t>(ended.size()), finished_at(*ended.back())};
  }
  const PodPtr last_success = *std::ranges::max_element(succeeded, {}, [](const PodPtr& p) { return finished_at(*p); });
  JobBackoff after;
  for (const PodPtr& pod : ended) {
    if (finished_at(*pod) <= finished_at(*last_success)) continue;
    ++after.failures;
    after.last_failure = finished_at(*pod);
  }
  return after;
}

Duration backoff_left(const JobBackoff& backoff, WallTime now) {
  if (backoff.failures == 0) return Duration::zero();
  Duration wait = kBackoffFirst;
  for (std::int64_t i = 1; i < backoff.failures && wait < kBackoffMax; ++i) wait = std::min(wait * 2, kBackoffMax);
  return std::max<Duration>(wait - (now - backoff.last_failure), Duration::zero());
}

}  // namespace spillway::workloads
