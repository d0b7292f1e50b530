#include "policy/endpoints/trigger_times.h"

#include <algorithm>

namespace spillway::endpoints {
namespace {

std::optional<WallTime> readiness_changed(const api::Pod& pod) {
  const api::PodCondition* ready = api::find_condition(pod.status.conditions, "Ready");
  return ready != nullptr ? ready->last_transition_time : std::nullopt;
}

}  // namespace

std::optional<WallTime> TriggerTimes::observe(const std::string& service_key, const api::Service& service,
                                              std::span<const workloads::PodPtr> pods) {
  const auto before = seen_.find(service_key);
  const bool is_new = before == seen_.end();
  std::optional<WallTime> first;
  const auto include = [&first](WallTime time) { first = first ? std::min(*first, time) : time; };
  Seen now;
  now.service = service.metadata.creation_timestamp;
  for (const workloads::PodPtr& pod : pods) {
    const auto time = readiness_changed(*pod);
    if (!time) continue;
    now.pods[pod->metadata.name] = *time;
    if (is_new) continue;
    const auto known = before->second.pods.find(pod->metadata.name);
    if (known == before->second.pods.end() || *time > known->second) include(*time);
  }
  if (is_new) {
    seen_[service_key] = now;
    return now.service;
  }
  if (now.service && (!before->second.service || *now.service > *before->second.service)) include(*now.service);
  before->second = std::move(now);
  return first;
}

}  // namespace spillway::endpoints
