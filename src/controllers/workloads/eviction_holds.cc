#include "controllers/workloads/eviction_holds.h"

#include "api/text/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::controllers {

namespace {

using policy::Reason;
using policy::ReasonCode;

double until_due_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Creation times are whole seconds: the pod may have been made at the end of that one. Taken as older, what was made
/// in the second of an eviction would pass for what was there before it.
Duration age_min(const api::Pod& pod, WallTime now) {
  const Duration age = now - pod.metadata.creation_timestamp.value_or(now);
  return std::max(age - seconds(1), Duration::zero());
}

}  // namespace

void EvictionHolds::on_pod(const workloads::PodPtr& before, const workloads::PodPtr& after,
                           client::EventRecorder& events, Now now) {
  if (mode_ == Mode::kOff || !after || !workloads::was_evicted(*after)) return;
  if (before && before->metadata.uid == after->metadata.uid && workloads::was_evicted(*before)) return;
  const api::OwnerReference* owner = api::controller_of(after->metadata);
  if (owner == nullptr) return;
  workloads::EvictionBackoff& backoff = by_owner_[owner->uid];
  backoff.tidy(now.mono);
  const std::string& node = after->spec.node_name;
  const auto& backoff_now = backoff.evicted(node, after->metadata.name, age_min(*after, now.wall), now.mono);
  if (now.mono >= backoff_now.until) return;
  api::ObjectReference about;
  about.api_version = owner->api_version;
  about.kind = owner->kind;
  about.ns = after->metadata.ns;
  about.name = owner->name;
  about.uid = owner->uid;
  events.record(
      about, client::EventType::kWarning, "EvictionBackOff",
      fmt::format("Pod {} was evicted from {}, the {}. time in a row; it is replaced in {}", after->metadata.name, node,
                  backoff_now.in_a_row, api::format_duration(backoff_now.until - now.mono)),
      now);
}

const workloads::EvictionBackoff* EvictionHolds::of(const std::string& owner_uid, Now now) {
  const auto found = by_owner_.find(owner_uid);
  if (found == by_owner_.end()) return nullptr;
  found->second.tidy(now.mono);
  if (!found->second.nodes().empty()) return &found->second;
  by_owner_.erase(found);
  return nullptr;
}

policy::Decision EvictionHolds::explain(policy::Subject owner, std::string_view by, Now now) const {
  policy::Decision decision;
  decision.at = now.wall;
  decision.by = by;
  decision.area = policy::Area::kWorkloads;
  decision.action = "replace";
  decision.verdict = policy::Verdict::kRests;
  const auto found = by_owner_.find(owner.uid);
  decision.subject = std::move(owner);
  std::vector<std::pair<Instant, Reason>> waits;
  if (found != by_owner_.end()) {
    for (const auto& [name, node] : found->second.nodes()) {
      if (now.mono >= node.until) continue;
      waits.emplace_back(node.until, Reason{ReasonCode::kEvictedInARow,
                                            {{"node", name},
                                             {"evictions", node.in_a_row},
                                             {"pods", static_cast<std::int64_t>(node.pods.size())},
                                             {"due_seconds", until_due_seconds(node.until - now.mono)}}});
    }
  }
  std::ranges::stable_sort(waits, {}, &std::pair<Instant, Reason>::first);
  for (auto& [until, reason] : waits) decision.reasons.push_back(std::move(reason));
  if (!decision.reasons.empty()) {
    decision.verdict = policy::Verdict::kWaits;
  } else {
    decision.reasons.push_back(
        {ReasonCode::kNothingHeldBack, {{"back_off", std::string(mode_ == Mode::kOn ? "on" : "off")}}});
  }
  return decision;
}

}  // namespace spillway::controllers
