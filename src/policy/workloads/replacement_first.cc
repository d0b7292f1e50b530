#include "policy/workloads/replacement_first.h"

#include "api/object/kind_id.h"
#include "api/text/time_text.h"
#include "base/elapsed.h"
#include "policy/workloads/pod_state.h"

#include <algorithm>
#include <string>

namespace spillway::workloads {

namespace {

/// The order in which replaced pods are deleted.
bool deleted_before(const ReplacedPod& a, const ReplacedPod& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.asked_at != b.asked_at) return a.asked_at < b.asked_at;
  return a.pod < b.pod;
}

/// The number of `replaced` pods that are not needed beside `others`.
std::int64_t spared_by(std::int64_t others, std::int64_t replaced, std::int64_t wanted) {
  return replaced - std::max<std::int64_t>(0, wanted - others);
}

}  // namespace

bool is_being_replaced(const api::Pod& pod) {
  return is_active(pod) && !pod.spec.node_name.empty() &&
         pod.metadata.annotations.contains(std::string(kReplacementAnnotation));
}

std::optional<WallTime> replacement_asked_at(const api::Pod& pod) {
  if (!is_being_replaced(pod)) return std::nullopt;
  const auto time = api::parse_time(pod.metadata.annotations.find(std::string(kReplacementAnnotation))->second);
  return time ? *time : WallTime{};
}

bool is_replaceable(const api::Pod& pod) {
  const api::OwnerReference* owner = api::controller_of(pod.metadata);
  return owner != nullptr && api::kind_of(*owner) == api::KindId{"apps", "ReplicaSet"} && is_active(pod) &&
         !pod.spec.node_name.empty();
}

void ReplicaStanding::count(const api::Pod& pod) {
  if (!is_active(pod) || is_being_replaced(pod)) return;
  ++made;
  if (pod.spec.node_name.empty()) return;
  ++placed;
  if (is_ready(pod)) ++ready;
}

std::string_view to_string(ReplacementStage stage) {
  switch (stage) {
    case ReplacementStage::kMayGo:
      return "may-go";
    case ReplacementStage::kNotReady:
      return "not-ready";
    case ReplacementStage::kNotPlaced:
      return "not-placed";
    case ReplacementStage::kNotMade:
      return "not-made";
  }
  return {};
}

ReplacementStage stage_of(const api::PodKey& pod, std::span<const ReplacedPod> replaced, const ReplicaStanding& others,
                          WallTime now) {
  const auto self = std::ranges::find(replaced, pod, &ReplacedPod::pod);
  if (self == replaced.end()) return ReplacementStage::kMayGo;
  const auto place =
      std::ranges::count_if(replaced, [&](const ReplacedPod& each) { return deleted_before(each, *self); });
  const auto count = static_cast<std::int64_t>(replaced.size());
  // A mark from the future, beyond what clocks differ by, is as good as one from long ago.
  const bool waits =
      elapsed(self->asked_at, now) < kReplacementPatience && elapsed(now, self->asked_at) < kReplacementPatience;
  if (place < spared_by(others.ready, count, others.wanted)) return ReplacementStage::kMayGo;
  if (place < spared_by(others.placed, count, others.wanted)) {
    return waits ? ReplacementStage::kNotReady : ReplacementStage::kMayGo;
  }
  if (place < spared_by(others.made, count, others.wanted)) return ReplacementStage::kNotPlaced;
  return waits ? ReplacementStage::kNotMade : ReplacementStage::kMayGo;
}

policy::Reason reason_of(ReplacementStage stage, const ReplicaStanding& others) {
  return {policy::ReasonCode::kNoReplacement,
          {{"replacement", std::string(to_string(stage))},
           {"wanted", others.wanted},
           {"made", others.made},
           {"placed", others.placed},
           {"ready", others.ready}}};
}

std::int64_t unplaced(std::int64_t replaced, const ReplicaStanding& others) {
  return std::clamp<std::int64_t>(others.wanted - others.placed, 0, replaced);
}

}  // namespace spillway::workloads
