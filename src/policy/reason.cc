#include "policy/reason.h"

#include "base/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace spillway::policy {

namespace {

using enum ReasonCode;

struct CodeName {
  ReasonCode code;
  std::string_view name;
};

/// Names in the order of the enumerators.
constexpr auto kNames = std::to_array<CodeName>({
    {kNoThresholdMet, "no-threshold-met"},
    {kThresholdNotMet, "threshold-not-met"},
    {kThresholdMet, "threshold-met"},
    {kGraceNotOver, "grace-not-over"},
    {kObservationMissing, "observation-missing"},
    {kObservationStale, "observation-stale"},
    {kRankedFirst, "ranked-first"},
    {kRankedLater, "ranked-later"},
    {kCriticalPodSpared, "critical-pod-spared"},
    {kNoCandidate, "no-candidate"},
    {kEvictionInProgress, "eviction-in-progress"},
    {kLocalStorageExceeded, "local-storage-exceeded"},
    {kReclaimed, "reclaimed"},
    {kReclaimSufficed, "reclaim-sufficed"},
    {kReclaimFellShort, "reclaim-fell-short"},
    {kReclaimSuperseded, "reclaim-superseded"},
    {kThresholdNear, "threshold-near"},
    {kCacheTaken, "cache-taken"},
    {kCacheStayed, "cache-stayed"},
    {kCacheReturned, "cache-returned"},
    {kCacheSmall, "cache-small"},
    {kVictimOverdue, "victim-overdue"},
    {kEmergency, "emergency"},
    {kShadow, "shadow"},
    {kHeld, "held"},
    {kKubeletEvicted, "kubelet-evicted"},
    {kEstimateAgrees, "estimate-agrees"},
    {kEstimateDisagrees, "estimate-disagrees"},
    {kInBlindZone, "in-blind-zone"},
    {kHeartbeatFresh, "heartbeat-fresh"},
    {kHeartbeatStale, "heartbeat-stale"},
    {kNeverPosted, "never-posted"},
    {kZoneRateLimited, "zone-rate-limited"},
    {kZoneHalted, "zone-halted"},
    {kMasterDisruption, "master-disruption"},
    {kTolerationExpired, "toleration-expired"},
    {kNotTolerated, "not-tolerated"},
    {kManualHold, "manual-hold"},
    {kClockJumped, "clock-jumped"},
    {kWatchStale, "watch-stale"},
    {kHeartbeatStall, "heartbeat-stall"},
    {kStormCoolDown, "storm-cool-down"},
    {kActLimitReached, "act-limit-reached"},
    {kBudgetRefuses, "budget-refuses"},
    {kNoReplacement, "no-replacement"},
    {kZoneState, "zone-state"},
    {kNodeConditions, "node-conditions"},
    {kNextDeletion, "next-deletion"},
    {kFits, "fits"},
    {kInsufficientResource, "insufficient-resource"},
    {kUntoleratedTaint, "untolerated-taint"},
    {kNodeSelectorMismatch, "node-selector-mismatch"},
    {kNodeUnschedulable, "node-unschedulable"},
    {kNodePressure, "node-pressure"},
    {kTooManyPods, "too-many-pods"},
    {kPortConflict, "port-conflict"},
    {kPodAffinityMismatch, "pod-affinity-mismatch"},
    {kFeatureMissing, "feature-missing"},
    {kTopologySpreadExceeded, "topology-spread-exceeded"},
    {kNodeUnknown, "node-unknown"},
    {kOsMismatch, "os-mismatch"},
    {kSidecarForbidden, "sidecar-forbidden"},
    {kSysctlForbidden, "sysctl-forbidden"},
    {kAppArmorUnavailable, "apparmor-unavailable"},
    {kNodeShuttingDown, "node-shutting-down"},
    {kNotAligned, "not-aligned"},
    {kHintConsidered, "hint-considered"},
    {kNotAllocated, "not-allocated"},
    {kPreempted, "preempted"},
    {kPreemptionInsufficient, "preemption-insufficient"},
    {kRolledOut, "rolled-out"},
    {kRolloutPaused, "rollout-paused"},
    {kRolloutUnobserved, "rollout-unobserved"},
    {kRolloutMoves, "rollout-moves"},
    {kSurgeReached, "surge-reached"},
    {kUnavailableReached, "unavailable-reached"},
    {kOldPodsLeave, "old-pods-leave"},
    {kDeadlineExceeded, "deadline-exceeded"},
    {kPodsRefused, "pods-refused"},
    {kPodNotReady, "pod-not-ready"},
    {kEvictedInARow, "evicted-in-a-row"},
    {kNothingHeldBack, "nothing-held-back"},
});

constexpr bool has_every_code() {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (static_cast<std::size_t>(kNames[i].code) != i) return false;
  }
  return kNames.size() == static_cast<std::size_t>(kLastReasonCode) + 1;
}

static_assert(has_every_code());

}  // namespace

std::string_view to_string(ReasonCode code) {
  const auto at = static_cast<std::size_t>(code);
  SPILLWAY_CHECK(at < kNames.size());
  return kNames[at].name;
}

namespace {

/// The enumerator with this name, among those up to `last`.
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
    case Area::kWorkloads:
      return "workloads";
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

const Fact* find_fact(const std::vector<Fact>& facts, std::string_view name) {
  const auto found = std::ranges::find(facts, name, &Fact::name);
  return found == facts.end() ? nullptr : &*found;
}

std::optional<std::string_view> text_fact(const Reason& reason, std::string_view name) {
  const Fact* fact = find_fact(reason.facts, name);
  const auto* text = fact == nullptr ? nullptr : std::get_if<std::string>(&fact->value);
  return text == nullptr ? std::nullopt : std::optional<std::string_view>(*text);
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

std::string render(const std::vector<Reason>& reasons) {
  std::string text;
  for (const Reason& reason : reasons) {
    if (!text.empty()) text += "; ";
    text += render(reason);
  }
  return text;
}

}  // namespace spillway::policy
