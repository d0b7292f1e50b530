// Decision and Reason: the results of every rule below. A reason is an enumerator and the numbers compared, never
// prose; logs, Events, journals, `spillway explain` and tests render the same value. All modules share these words: a
// decision to evict or reject a pod, to keep it Pending, to taint a node, to delay a rollout, and to do none of that.
// Thread: any (plain values).
#pragma once

#include "base/time.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::policy {

enum class ReasonCode {
  // eviction
  kNoThresholdMet,
  kThresholdNotMet,
  kThresholdMet,
  kGraceNotOver,
  kObservationMissing,
  kObservationStale,
  kRankedFirst,
  kRankedLater,
  kCriticalPodSpared,
  kNoCandidate,
  kEvictionInProgress,
  kLocalStorageExceeded,
  kReclaimed,
  kReclaimSufficed,
  kReclaimFellShort,
  kReclaimSuperseded,
  kThresholdNear,
  kCacheTaken,
  kCacheStayed,
  kCacheReturned,
  kCacheSmall,
  kVictimOverdue,
  kEmergency,
  kShadow,
  kHeld,
  kKubeletEvicted,
  kEstimateAgrees,
  kEstimateDisagrees,
  kInBlindZone,
  // lifecycle
  kHeartbeatFresh,
  kHeartbeatStale,
  kNeverPosted,
  kZoneRateLimited,
  kZoneHalted,
  kMasterDisruption,
  kTolerationExpired,
  kNotTolerated,
  kManualHold,
  kClockJumped,
  kWatchStale,
  kHeartbeatStall,
  kStormCoolDown,
  kActLimitReached,
  kBudgetRefuses,
  kNoReplacement,
  kZoneState,
  kNodeConditions,
  kNextDeletion,
  // scheduling and admission
  kFits,
  kInsufficientResource,
  kUntoleratedTaint,
  kNodeSelectorMismatch,
  kNodeUnschedulable,
  kNodePressure,
  kTooManyPods,
  kPortConflict,
  kPodAffinityMismatch,
  kFeatureMissing,
  kTopologySpreadExceeded,
  kNodeUnknown,
  kOsMismatch,
  kSidecarForbidden,
  kSysctlForbidden,
  kAppArmorUnavailable,
  kNodeShuttingDown,
  kNotAligned,
  kHintConsidered,
  kNotAllocated,
  kPreempted,
  kPreemptionInsufficient,
  // workloads
  kRolledOut,
  kRolloutPaused,
  kRolloutUnobserved,
  kRolloutMoves,
  kSurgeReached,
  kUnavailableReached,
  kOldPodsLeave,
  kDeadlineExceeded,
  kPodsRefused,
  kPodNotReady,
  kEvictedInARow,
  kNothingHeldBack,
};

inline constexpr ReasonCode kLastReasonCode = ReasonCode::kNothingHeldBack;

/// "threshold-met": stable, for JSON and metrics.
std::string_view to_string(ReasonCode code);
/// nullopt: no such code.
std::optional<ReasonCode> parse_reason_code(std::string_view text);

/// One number or name that the decision depended on: {"available_bytes", 104857600}.
struct Fact {
  std::string name;
  std::variant<std::int64_t, double, std::string> value;

  friend bool operator==(const Fact&, const Fact&) = default;
};

struct Reason {
  ReasonCode code{};
  std::vector<Fact> facts;

  friend bool operator==(const Reason&, const Reason&) = default;
};

/// The fact of that name; nullptr: there is none.
const Fact* find_fact(const std::vector<Fact>& facts, std::string_view name);
/// nullopt: no fact of that name, or one that is a number.
std::optional<std::string_view> text_fact(const Reason& reason, std::string_view name);

/// "threshold-met signal=memory.available available_bytes=104857600".
std::string render(const Reason& reason);
/// Renders the reasons in order, with "; " between them.
std::string render(const std::vector<Reason>& reasons);

/// The part of Spillway that decided.
enum class Area { kEviction, kAdmission, kPreemption, kScheduling, kLifecycle, kWorkloads };

inline constexpr Area kLastArea = Area::kWorkloads;

/// The outcome of a decision.
enum class Verdict {
  kActs,     // `action` is carried out on the subject
  kRefuses,  // the act that was requested for the subject is not carried out
  kWaits,    // an act is required, and something delays it
  kRests,    // no act is required
};

inline constexpr Verdict kLastVerdict = Verdict::kRests;

/// "eviction"; "acts": stable, for JSON and metrics.
std::string_view to_string(Area area);
std::string_view to_string(Verdict verdict);
/// nullopt: no such word.
std::optional<Area> parse_area(std::string_view text);
std::optional<Verdict> parse_verdict(std::string_view text);

/// The object of a decision.
struct Subject {
  std::string kind;  // "Pod", "Node"
  std::string ns;    // empty for objects without a namespace
  std::string name;
  std::string uid;  // may be empty: unknown

  /// "pod shop/cart-7", "node n1".
  std::string text() const;

  friend bool operator==(const Subject&, const Subject&) = default;
};

/// One of several candidates that were compared, with its evaluation.
struct Candidate {
  Subject subject;
  Reason reason;
  /// The criterion that puts it before the next candidate: "priority", "above-request", "name". Empty for the last one.
  std::string decided_by;

  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// One decision, complete enough to be explained when its objects no longer exist.
struct Decision {
  WallTime at;
  std::string by;  // the node or controller that decided
  Area area{};
  Verdict verdict = Verdict::kRests;
  std::string action;  // "evict", "reject", "taint"; not carried out with another verdict than kActs
  Subject subject;
  std::string message;                // text of the object's status or event; may be empty
  std::vector<Reason> reasons;        // in the order in which they were found
  std::vector<Candidate> candidates;  // in the order of the ranking; the first few if there were many
  std::int64_t candidates_total = 0;  // the number of compared candidates
  std::vector<Fact> cost;             // resources that the act takes and frees; some facts are added later

  friend bool operator==(const Decision&, const Decision&) = default;
};

}  // namespace spillway::policy
