#include "policy/reason.h"

#include "base/check.h"

#include <fmt/format.h>

namespace spillway::policy {

std::string_view to_string(ReasonCode code) {
  switch (code) {
    case ReasonCode::kNoThresholdMet:
      return "no-threshold-met";
    case ReasonCode::kThresholdNotMet:
      return "threshold-not-met";
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
    case ReasonCode::kReclaimed:
      return "reclaimed";
    case ReasonCode::kReclaimSufficed:
      return "reclaim-sufficed";
    case ReasonCode::kReclaimFellShort:
      return "reclaim-fell-short";
    case ReasonCode::kReclaimSuperseded:
      return "reclaim-superseded";
    case ReasonCode::kVictimOverdue:
      return "victim-overdue";
    case ReasonCode::kEmergency:
      return "emergency";
    case ReasonCode::kShadow:
      return "shadow";
    case ReasonCode::kHeld:
      return "held";
    case ReasonCode::kKubeletEvicted:
      return "kubelet-evicted";
    case ReasonCode::kEstimateAgrees:
      return "estimate-agrees";
    case ReasonCode::kEstimateDisagrees:
      return "estimate-disagrees";
    case ReasonCode::kInBlindZone:
      return "in-blind-zone";
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
    case ReasonCode::kManualHold:
      return "manual-hold";
    case ReasonCode::kClockJumped:
      return "clock-jumped";
    case ReasonCode::kWatchStale:
      return "watch-stale";
    case ReasonCode::kHeartbeatStall:
      return "heartbeat-stall";
    case ReasonCode::kStormCoolDown:
      return "storm-cool-down";
    case ReasonCode::kActLimitReached:
      return "act-limit-reached";
    case ReasonCode::kBudgetRefuses:
      return "budget-refuses";
    case ReasonCode::kNoReplacement:
      return "no-replacement";
    case ReasonCode::kZoneState:
      return "zone-state";
    case ReasonCode::kNodeConditions:
      return "node-conditions";
    case ReasonCode::kNextDeletion:
      return "next-deletion";
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
    case ReasonCode::kNodeUnknown:
      return "node-unknown";
    case ReasonCode::kOsMismatch:
      return "os-mismatch";
    case ReasonCode::kSidecarForbidden:
      return "sidecar-forbidden";
    case ReasonCode::kSysctlForbidden:
      return "sysctl-forbidden";
    case ReasonCode::kAppArmorUnavailable:
      return "apparmor-unavailable";
    case ReasonCode::kNodeShuttingDown:
      return "node-shutting-down";
    case ReasonCode::kNotAligned:
      return "not-aligned";
    case ReasonCode::kHintConsidered:
      return "hint-considered";
    case ReasonCode::kNotAllocated:
      return "not-allocated";
    case ReasonCode::kPreempted:
      return "preempted";
    case ReasonCode::kPreemptionInsufficient:
      return "preemption-insufficient";
  }
  check_failed("ReasonCode in range", __FILE__, __LINE__);
}

namespace {

/// The value with this name, of those up to `last`.
template <typename Enum>
std::optional<Enum> parse_name(std::string_view text, Enum last) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const auto value = static_cast<Enum>(i);
    if (to_string(value) == text) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ReasonCode> parse_reason_code(std::string_view text) {
  return parse_name(text, kLastReasonCode);
}

std::string_view to_string(Area area) {
  switch (area) {
    case Area::kEviction:
      return "eviction";
    case Area::kAdmission:
      return "admission";
    case Area::kPreemption:
      return "preemption";
    case Area::kScheduling:
      return "scheduling";
    case Area::kLifecycle:
      return "lifecycle";
  }
  check_failed("Area in range", __FILE__, __LINE__);
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kActs:
      return "acts";
    case Verdict::kRefuses:
      return "refuses";
    case Verdict::kWaits:
      return "waits";
    case Verdict::kRests:
      return "rests";
  }
  check_failed("Verdict in range", __FILE__, __LINE__);
}

std::optional<Area> parse_area(std::string_view text) {
  return parse_name(text, kLastArea);
}

std::optional<Verdict> parse_verdict(std::string_view text) {
  return parse_name(text, kLastVerdict);
}

std::string Subject::text() const {
  std::string text = kind;
  if (!text.empty() && text.front() >= 'A' && text.front() <= 'Z') text.front() = static_cast<char>(text.front() + 32);
  text += ' ';
  if (!ns.empty()) text += ns + '/';
  return text + name;
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
