#include "sim/properties/eviction_audit.h"

#include "api/object/pod_requests.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::sim {
namespace {

Bytes above_request(const EvictionAudit::Running& each) {
  return each.used - api::agent_request(each.pod->spec, "memory").bytes();
}

/// True for a pod that the agent rejected: it never ran, so no process had to end.
bool was_rejected(const api::Pod& pod) {
  return pod.status.message.starts_with("Pod was rejected");
}

}  // namespace

void EvictionAudit::on_decision(const std::string& uid, Cause cause, std::span<const Running> running, Now now) {
  if (!begun_.emplace(uid, now.mono).second) {
    verdicts_.violate(Property::kEvictionsResume, now, fmt::format("an eviction of {} is decided a second time", uid));
  }
  if (cause != Cause::kOwnLimit) {
    for (const Running& other : running) check_alone(uid, other, now);
  }
  const auto victim =
      std::ranges::find_if(running, [&uid](const Running& each) { return each.pod->metadata.uid == uid; });
  if (victim == running.end()) return;
  if (api::is_critical(*victim->pod)) {
    verdicts_.violate(Property::kProtectedPods, now,
                      fmt::format("critical pod {} is to be evicted", victim->pod->key().text()));
  }
  for (const Running& other : running) {
    if (cause == Cause::kMemory && other.pod != victim->pod && !begun_.contains(other.pod->metadata.uid))
      compare(*victim, other, now);
  }
}

void EvictionAudit::compare(const Running& victim, const Running& other, Now now) {
  if (api::is_critical(*other.pod)) return;
  const Bytes of_victim = above_request(victim);
  const Bytes of_other = above_request(other);
  const auto text = [](const Running& each) {
    return fmt::format("{} (priority {}, {}Mi above its request)", each.pod->key().text(), api::priority_of(*each.pod),
                       above_request(each).count() / mebibytes(1).count());
  };
  const bool both_above = of_victim > kMargin && of_other > kMargin;
  const Bytes within = Bytes{0} - kMargin;
  const bool both_within = of_victim < within && of_other < within;
  const bool only_other = of_victim < within && of_other > kMargin;
  const bool protects = api::priority_of(*victim.pod) > api::priority_of(*other.pod) && (both_above || both_within);
  if (!only_other && !protects) return;
  verdicts_.violate(Property::kProtectedPods, now,
                    fmt::format("{} is to be evicted before {}", text(victim), text(other)));
}

/// The memory of a pod is free soon after its end: a second victim would be evicted in vain. Pods above limits of their
/// own are all evicted at once.
void EvictionAudit::check_alone(const std::string& uid, const Running& other, Now now) {
  const auto begun = begun_.find(other.pod->metadata.uid);
  if (other.pod->metadata.uid == uid || begun == begun_.end() || now.mono - begun->second >= kOneAtATime) return;
  verdicts_.violate(
      Property::kEvictionsResume, now,
      fmt::format("{} is to be evicted as well, while {} is on its way out", uid, other.pod->key().text()));
}

void EvictionAudit::on_return(const std::string& uid, Now now) {
  const auto begun = begun_.find(uid);
  if (begun != begun_.end()) begun->second = now.mono;
}

void EvictionAudit::on_start(const std::string& uid, Now now) {
  if (!begun_.contains(uid)) return;
  verdicts_.violate(Property::kEvictionsResume, now,
                    fmt::format("pod {} starts again though its eviction is in the journal", uid));
}

void EvictionAudit::on_pod(const api::Pod& before, const api::Pod& after, Now now) {
  if (after.status.reason != "Evicted" || before.status.reason == "Evicted") return;
  if (api::is_critical(after)) {
    verdicts_.violate(Property::kProtectedPods, now, fmt::format("critical pod {} was evicted", after.key().text()));
  }
  if (begun_.contains(after.metadata.uid) || was_rejected(after)) return;
  verdicts_.violate(Property::kJournalFirst, now,
                    fmt::format("pod {} was evicted without a line in the journal", after.key().text()));
}

}  // namespace spillway::sim
