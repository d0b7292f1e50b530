// Decision and Reason: what every rule below returns. A reason is an enumerator and the numbers compared, never prose;
// logs, Events, `spillway explain` and tests render the same value.
// Thread: any (plain values).
#pragma once

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
  kReclaimSufficed,
  kEmergency,
  // lifecycle
  kHeartbeatFresh,
  kHeartbeatStale,
  kNeverPosted,
  kZoneRateLimited,
  kZoneHalted,
  kMasterDisruption,
  kTolerationExpired,
  kNotTolerated,
  // scheduling and admission
  kFits,
  kInsufficientResource,
  kUntoleratedTaint,
  kNodeSelectorMismatch,
  kNodeUnschedulable,
  kNodePressure,
  kTooManyPods,
  kPortConflict,
};

inline constexpr ReasonCode kLastReasonCode = ReasonCode::kPortConflict;

/// "threshold-met": stable, for JSON and metrics.
std::string_view to_string(ReasonCode code);
/// nullopt: no such code.
std::optional<ReasonCode> parse_reason_code(std::string_view text);

/// One number or name that was looked at: {"available_bytes", 104857600}.
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

/// "threshold-met signal=memory.available available_bytes=104857600".
std::string render(const Reason& reason);

template <typename Action>
struct Decision {
  std::vector<Action> actions;
  std::vector<Reason> reasons;

  friend bool operator==(const Decision&, const Decision&) = default;
};

}  // namespace spillway::policy
