#include "policy/reason.h"

#include "base/check.h"

#include <fmt/format.h>

namespace spillway::policy {

std::string_view to_string(ReasonCode code) {
  switch (code) {
    case ReasonCode::kNoThresholdMet:
      return "no-threshold-met";
    case ReasonCode::kThresholdMet:
      return "threshold-met";
    case ReasonCode::kGraceNotOver:
      return "grace-not-over";
    case ReasonCode::kObservationMissing:
      return "observation-missing";
    case ReasonCode::kObservationStale:
      return "observation-stale";
    case ReasonCode::kRankedFirst:
      return "ranked-first";
    case ReasonCode::kRankedLater:
      return "ranked-later";
    case ReasonCode::kCriticalPodSpared:
      return "critical-pod-spared";
    case ReasonCode::kNoCandidate:
      return "no-candidate";
    case ReasonCode::kEvictionInProgress:
      return "eviction-in-progress";
    case ReasonCode::kLocalStorageExceeded:
      return "local-storage-exceeded";
    case ReasonCode::kReclaimSufficed:
      return "reclaim-sufficed";
    case ReasonCode::kEmergency:
      return "emergency";
    case ReasonCode::kHeartbeatFresh:
      return "heartbeat-fresh";
    case ReasonCode::kHeartbeatStale:
      return "heartbeat-stale";
    case ReasonCode::kNeverPosted:
      return "never-posted";
    case ReasonCode::kZoneRateLimited:
      return "zone-rate-limited";
    case ReasonCode::kZoneHalted:
      return "zone-halted";
    case ReasonCode::kMasterDisruption:
      return "master-disruption";
    case ReasonCode::kTolerationExpired:
      return "toleration-expired";
    case ReasonCode::kNotTolerated:
      return "not-tolerated";
    case ReasonCode::kFits:
      return "fits";
    case ReasonCode::kInsufficientResource:
      return "insufficient-resource";
    case ReasonCode::kUntoleratedTaint:
      return "untolerated-taint";
    case ReasonCode::kNodeSelectorMismatch:
      return "node-selector-mismatch";
    case ReasonCode::kNodeUnschedulable:
      return "node-unschedulable";
    case ReasonCode::kNodePressure:
      return "node-pressure";
    case ReasonCode::kTooManyPods:
      return "too-many-pods";
    case ReasonCode::kPortConflict:
      return "port-conflict";
  }
  check_failed("ReasonCode in range", __FILE__, __LINE__);
}

std::optional<ReasonCode> parse_reason_code(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(kLastReasonCode); ++i) {
    const auto code = static_cast<ReasonCode>(i);
    if (to_string(code) == text) return code;
  }
  return std::nullopt;
}

std::string render(const Reason& reason) {
  std::string text(to_string(reason.code));
  for (const Fact& fact : reason.facts) {
    text += ' ';
    text += fact.name;
    text += '=';
    std::visit([&](const auto& value) { text += fmt::format("{}", value); }, fact.value);
  }
  return text;
}

}  // namespace spillway::policy
