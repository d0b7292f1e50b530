#include "cli/text/reason_sentence.h"

#include "base/ascii.h"
#include "cli/text/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

namespace spillway::cli {
namespace {

using policy::Fact;
using policy::Reason;
using policy::ReasonCode;

/// The facts of one reason as text; empty if the template names a missing fact.
class Facts {
 public:
  explicit Facts(const Reason& reason) : facts_(reason.facts) {}

  std::string operator[](std::string_view name) const {
    const Fact* fact = find_fact(facts_, name);
    return fact == nullptr ? std::string() : value_text(*fact);
  }

  /// The value of the fact "available_bytes", "available_inodes" or "available_processes".
  std::string measured(std::string_view what) const {
    const Fact* fact = find_measured(facts_, what);
    return fact == nullptr ? std::string() : value_text(*fact);
  }

  /// The value of `what`, with enough digits to distinguish it from that of `limit`.
  std::string apart(std::string_view what, std::string_view limit) const {
    const Fact* fact = find_of(what);
    const Fact* other = find_of(limit);
    if (fact == nullptr) return {};
    return other == nullptr ? value_text(*fact) : value_text_apart(*fact, *other);
  }

  std::int64_t integer(std::string_view name) const {
    const Fact* fact = find_fact(facts_, name);
    const auto* number = fact == nullptr ? nullptr : std::get_if<std::int64_t>(&fact->value);
    return number == nullptr ? 0 : *number;
  }

 private:
  const Fact* find_of(std::string_view what) const {
    const Fact* fact = find_fact(facts_, what);
    return fact != nullptr ? fact : find_measured(facts_, what);
  }

  const std::vector<Fact>& facts_;
};

// Sentences. Empty: the reason has not the facts for it.

std::string threshold_met(const Facts& facts) {
  const std::string available = facts.apart("available", "threshold");
  if (available.empty()) return {};
  return fmt::format("{} was {}, below its {}threshold of {}", facts["signal"], available,
                     facts["grace_seconds"].empty() ? "" : "soft ", facts.measured("threshold"));
}

std::string grace_not_over(const Facts& facts) {
  const std::string available = facts.apart("available", "threshold");
  if (available.empty()) return {};
  return fmt::format("{} is {}, below its soft threshold of {}, but its grace of {} is not over", facts["signal"],
                     available, facts.measured("threshold"), facts["grace_seconds"]);
}

std::string threshold_near(const Facts& facts) {
  if (facts.measured("available").empty()) return {};
  return fmt::format("{} is {}, near its threshold of {} or below it: {} of page cache are to be reclaimed",
                     facts["signal"], facts.measured("available"), facts.measured("threshold"), facts["wanted_bytes"]);
}

std::string observation_stale(const Facts& facts) {
  if (facts.measured("available").empty()) return {};
  return fmt::format("{} is below its threshold, but was not measured since the last pass", facts["signal"]);
}

std::string local_storage_exceeded(const Facts& facts) {
  return fmt::format("it used {} of local storage, more than its limit of {} ({})",
                     facts.apart("used_bytes", "limit_bytes"), facts["limit_bytes"], facts["limit"]);
}

std::string held(const Facts& facts) {
  return "acting is held: " + facts["why"];
}

std::string kubelet_evicted(const Facts& facts) {
  return "the kubelet evicted it on its own: " + facts["kubelet_message"];
}

/// "measured as "available": 400Mi available, 301Mi more than as "workingset", no pressure".
std::string estimate_agrees(const Facts& facts) {
  const std::int64_t difference = facts.integer("difference_bytes");
  std::string compared = "as much as";
  if (difference != 0) {
    compared = value_text({"difference_bytes", difference < 0 ? -difference : difference}) +
               (difference < 0 ? " less than" : " more than");
  }
  return fmt::format("measured as \"{}\": {} available, {} as \"{}\", {}pressure", facts["estimator"],
                     facts["estimate_bytes"], compared, facts["chosen"], facts["pressure"] == "yes" ? "" : "no ");
}

std::string estimate_disagrees(const Facts& facts) {
  return estimate_agrees(facts) + ": they disagree";
}

std::string in_blind_zone(const Facts& facts) {
  return fmt::format("the kernel's OOM killer may act before {} falls to {}: about {} cannot be used", facts["signal"],
                     facts.measured("threshold"), facts["blind_zone_bytes"]);
}

std::string silence(const Facts& facts, std::string_view against_grace) {
  if (facts["from"].empty()) return {};
  return fmt::format("its last sign of life ({}) is {} old, {} its grace of {}", facts["from"],
                     facts.apart("silence_seconds", "grace_seconds"), against_grace, facts["grace_seconds"]);
}

std::string heartbeat_fresh(const Facts& facts) {
  return silence(facts, "within");
}

std::string heartbeat_stale(const Facts& facts) {
  return silence(facts, "beyond");
}

std::string never_posted(const Facts& facts) {
  if (const std::string silent = silence(facts, "beyond"); !silent.empty()) {
    return silent + "; it has never posted a status";
  }
  const std::string every = facts["look_every_seconds"];
  return "the controllers have not evaluated it yet" + (every.empty() ? "" : "; they do so every " + every);
}

std::string zone_rate_limited(const Facts& facts) {
  if (facts["place"].empty()) return {};
  const std::string due = facts["due_seconds"];
  return fmt::format("it is {} of {} in the queue of its zone{}", facts["place"], facts["waiting_nodes"],
                     due.empty() ? ", which does not move now" : "; its turn is in " + due);
}

std::string zone_state(const Facts& facts) {
  const std::string zone = facts["zone"];
  return fmt::format("zone {} is {}: {} of {} nodes are ready", zone.empty() ? "-" : zone, facts["state"],
                     facts["ready_nodes"], facts["nodes"]);
}

std::string zone_halted(const Facts& facts) {
  return fmt::format("its zone evicts nothing while it is {}", facts["state"]);
}

std::string manual_hold(const Facts& facts) {
  const std::string zone = facts["zone"];
  const std::string why = facts["why"];
  return fmt::format("{} held by hand{}{}", zone.empty() ? "everything is" : "zone " + zone + " is",
                     why.empty() ? "" : ": ", why);
}

std::string next_deletion(const Facts& facts) {
  return fmt::format("{} of its pods will be deleted when their tolerations end; the first, {}, in {}", facts["pods"],
                     facts["pod"], facts["due_seconds"]);
}

std::string rolled_out(const Facts& facts) {
  return fmt::format("all {} pods are of its template and available", facts["pods_wanted"]);
}

std::string rollout_moves(const Facts& facts) {
  const std::string undo = facts["undo_revision"];
  return fmt::format("{} of {} pods are of its template, {} available in all{}", facts["pods_updated"],
                     facts["pods_wanted"], facts["pods_available"],
                     undo.empty() ? "" : "; kubectl rollout undo leads back to revision " + undo);
}

std::string surge_reached(const Facts& facts) {
  return fmt::format(
      "there may be {} pods at a time ({} wanted, {} more by maxSurge), and {} are wanted: "
      "no new one before an old one ends",
      facts["pods_max"], facts["pods_wanted"], facts["surge_max"], facts["pods"]);
}

std::string unavailable_reached(const Facts& facts) {
  return fmt::format(
      "{} pods must be available ({} wanted, {} fewer by maxUnavailable), {} are: "
      "no old one ends before a new one is available",
      facts["available_min"], facts["pods_wanted"], facts["unavailable_max"], facts["pods_available"]);
}

std::string old_pods_leave(const Facts& facts) {
  return fmt::format("its strategy is Recreate, and {} pods of earlier templates have not ended", facts["pods"]);
}

std::string deadline_exceeded(const Facts& facts) {
  return fmt::format("nothing has moved for longer than progressDeadlineSeconds, {}", facts["deadline_seconds"]);
}

std::string evicted_in_a_row(const Facts& facts) {
  return fmt::format("{} has evicted its pods {} times in a row; replacements that wait: {}, for {}", facts["node"],
                     facts["evictions"], facts["pods"], facts["due_seconds"]);
}

std::string no_replacement(const Facts& facts) {
  if (!facts["message"].empty()) return "another pod in its place would find no node: " + facts["message"];
  const std::string stage = facts["replacement"];
  if (stage == "behind-others") return "pods of higher priority, or created earlier, are placed first";
  const std::string_view what = stage == "not-ready"    ? "has a node and is not ready yet"
                                : stage == "not-placed" ? "has found no node yet"
                                : stage == "not-made"   ? "has not been made yet"
                                                        : "";
  if (what.empty()) return {};
  return fmt::format("the pod that takes its place {}: of {} pods that are wanted {} are ready without it", what,
                     facts["wanted"], facts["ready"]);
}

std::string nothing_held_back(const Facts& facts) {
  if (facts["back_off"] == "off") return "evicted pods are replaced at once; --eviction-backoff is off";
  return "no replacement of an evicted pod waits";
}

/// A refusal by volumes has the words of the scheduler.
std::string node_selector_mismatch(const Facts& facts) {
  return facts["volumes"];
}

std::string pods_refused(const Facts& facts) {
  return fmt::format("pods of {} are refused: {}", facts["replica_set"], facts["message"]);
}

/// The sentence for a code.
struct Row {
  ReasonCode code;
  ReasonRole role;
  std::string_view fixed = {};                      // a sentence without facts
  std::string (*sentence)(const Facts&) = nullptr;  // or one with facts; neither: the words of the code and the facts
};

using enum ReasonCode;
using enum ReasonRole;

/// Rows in the order of the enumerators.
constexpr auto kRows = std::to_array<Row>({
    {kNoThresholdMet, kCause, "no threshold is met"},
    {kThresholdNotMet, kRemark},
    {kThresholdMet, kCause, "", threshold_met},
    {kGraceNotOver, kCause, "", grace_not_over},
    {kObservationMissing, kTableRow},
    {kObservationStale, kCause, "", observation_stale},
    {kRankedFirst, kTableRow},
    {kRankedLater, kCause},
    {kCriticalPodSpared, kCause},
    {kNoCandidate, kCause, "no pod may be evicted"},
    {kEvictionInProgress, kCause, "an eviction is in progress"},
    {kLocalStorageExceeded, kCause, "", local_storage_exceeded},
    {kReclaimed, kTableRow},
    {kReclaimSufficed, kCause, "the node reclaimed enough by itself"},
    {kReclaimFellShort, kCause},
    {kReclaimSuperseded, kCause, "memory ran short meanwhile and is handled first"},
    {kThresholdNear, kCause, "", threshold_near},
    {kCacheTaken, kTableRow},
    {kCacheStayed, kCause},
    {kCacheReturned, kCause},
    {kCacheSmall, kCause},
    {kVictimOverdue, kCause},
    {kEmergency, kCause, "memory would have run out during its grace period, so it was killed at once"},
    {kShadow, kRemark, "nothing was done: this agent only watches (shadow)"},
    {kHeld, kCause, "", held},
    {kKubeletEvicted, kCause, "", kubelet_evicted},
    {kEstimateAgrees, kRemark, "", estimate_agrees},
    {kEstimateDisagrees, kRemark, "", estimate_disagrees},
    {kInBlindZone, kRemark, "", in_blind_zone},
    {kHeartbeatFresh, kCause, "", heartbeat_fresh},
    {kHeartbeatStale, kCause, "", heartbeat_stale},
    {kNeverPosted, kCause, "", never_posted},
    {kZoneRateLimited, kCause, "", zone_rate_limited},
    {kZoneHalted, kCause, "", zone_halted},
    {kMasterDisruption, kCause, "every zone is fully disrupted: nothing is evicted"},
    {kTolerationExpired, kCause},
    {kNotTolerated, kCause},
    {kManualHold, kCause, "", manual_hold},
    {kClockJumped, kCause},
    {kWatchStale, kCause},
    {kHeartbeatStall, kCause},
    {kStormCoolDown, kCause},
    {kActLimitReached, kCause},
    {kBudgetRefuses, kCause},
    {kNoReplacement, kCause, "", no_replacement},
    {kZoneState, kCause, "", zone_state},
    {kNodeConditions, kCause},
    {kNextDeletion, kCause, "", next_deletion},
    {kFits, kCause},
    {kInsufficientResource, kCause},
    {kUntoleratedTaint, kCause},
    {kNodeSelectorMismatch, kCause, "", node_selector_mismatch},
    {kNodeUnschedulable, kCause},
    {kNodePressure, kCause},
    {kTooManyPods, kCause},
    {kPortConflict, kCause},
    {kPodAffinityMismatch, kCause},
    {kFeatureMissing, kCause},
    {kTopologySpreadExceeded, kCause},
    {kNodeUnknown, kCause},
    {kOsMismatch, kCause},
    {kSidecarForbidden, kCause},
    {kSysctlForbidden, kCause},
    {kAppArmorUnavailable, kCause},
    {kNodeShuttingDown, kCause},
    {kNotAligned, kCause},
    {kHintConsidered, kCause},
    {kNotAllocated, kCause},
    {kPreempted, kCause},
    {kPreemptionInsufficient, kCause},
    {kRolledOut, kCause, "", rolled_out},
    {kRolloutPaused, kCause, "it is paused (spec.paused); kubectl rollout resume continues it"},
    {kRolloutUnobserved, kCause, "the deployment controller has not seen its latest version; does it run?"},
    {kRolloutMoves, kCause, "", rollout_moves},
    {kSurgeReached, kCause, "", surge_reached},
    {kUnavailableReached, kCause, "", unavailable_reached},
    {kOldPodsLeave, kCause, "", old_pods_leave},
    {kDeadlineExceeded, kCause, "", deadline_exceeded},
    {kPodsRefused, kCause, "", pods_refused},
    {kPodNotReady, kCause},
    {kEvictedInARow, kCause, "", evicted_in_a_row},
    {kNothingHeldBack, kCause, "", nothing_held_back},
});

constexpr bool has_every_code() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].code) != i) return false;
  }
  return kRows.size() == static_cast<std::size_t>(policy::kLastReasonCode) + 1;
}

static_assert(has_every_code());

const Row& row_of(ReasonCode code) {
  return kRows.at(static_cast<std::size_t>(code));
}

}  // namespace

ReasonRole role_of(ReasonCode code) {
  return row_of(code).role;
}

std::string words_of(ReasonCode code) {
  std::string words(policy::to_string(code));
  std::ranges::replace(words, '-', ' ');
  return words;
}

std::string facts_text(const std::vector<Fact>& facts) {
  std::string text;
  for (const Fact& fact : facts) {
    const bool is_condition = !fact.name.empty() && fact.name[0] >= 'A' && fact.name[0] <= 'Z';
    const std::string name = is_condition ? std::string(fact.name) : lower_case(heading_of(fact.name));
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value_text(fact));
  }
  return text;
}

std::string sentence_of(const Reason& reason) {
  const Row& row = row_of(reason.code);
  if (!row.fixed.empty()) return std::string(row.fixed);
  if (row.sentence != nullptr) {
    if (std::string text = row.sentence(Facts(reason)); !text.empty()) return text;
  }
  const std::string facts = facts_text(reason.facts);
  return facts.empty() ? words_of(reason.code) : words_of(reason.code) + ": " + facts;
}

}  // namespace spillway::cli
