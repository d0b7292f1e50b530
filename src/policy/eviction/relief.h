// Relief before eviction: when memory gets near a threshold, page cache is reclaimed from pods in the order in which
// they would be evicted. Page cache that was read twice counts as working set, so a pod that reads files may lead to an
// eviction although its memory could be freed without loss. Each round is bounded per pod and for the node; the freed
// amount and the amount that was read again decide if a pod takes part again.
// Thread: any (pure). Invariants: at most one round per interval; a critical pod is spared, as it is from eviction; an
// eviction waits for a round at most once between two times at which no memory threshold is met.
// Source: kernel document "cgroup-v2.rst", memory.reclaim and workingset_refault_file; docs/compat/eviction.md.
#pragma once

#include "base/bytes.h"
#include "base/time.h"
#include "policy/eviction/cache_reclaim.h"
#include "policy/eviction/decide.h"
#include "policy/reason.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::eviction {

struct ReliefBounds {
  Bytes pod_bytes_max = mebibytes(256);  // per pod and round
  Bytes node_bytes_max = gibibytes(1);   // for all pods together in a round
  /// Page cache that every pod keeps: pages of its programs and libraries. With less, a pod stalls on each call.
  Bytes kept_bytes = mebibytes(16);
  Duration interval = seconds(1);  // time between two rounds
  /// A threshold is near within a twentieth of the memory, but at least this: a round takes about a second, and pods
  /// that read files fill memory at disk speed.
  Bytes near_bytes_min = mebibytes(64);
  /// The time for which a pod is skipped after a reclaim in vain, doubled each time up to the maximum.
  Duration rest_min = seconds(30);
  Duration rest_max = minutes(10);
  /// Refaults within this time count against the reclaimed bytes.
  Duration window = minutes(1);
};

enum class ReliefEnd : std::uint8_t {
  kNone,      // page cache of the pod may be reclaimed again
  kStayed,    // less than an eighth was freed: dirty, locked or protected pages
  kReturned,  // more than a quarter of the amount was read again: the pod needs it
};

/// State of the relief of one pod.
struct PodRelief {
  Instant since{};   // the first round that counts
  Bytes freed;       // since then
  Bytes last_asked;  // in the last round
  Bytes last_freed;
  std::optional<Bytes> refaulted;  // the counter after the first round
  Bytes returned;                  // by which the counter has grown when it was read last
  ReliefEnd end = ReliefEnd::kNone;
  Instant rests_until{};
  std::int32_t rests = 0;  // in a row

  friend bool operator==(const PodRelief&, const PodRelief&) = default;
};

/// State of all relief. Bounds: one entry for each existing pod.
struct ReliefState {
  std::map<std::string, PodRelief> pods;  // by uid
  std::optional<Instant> last_round;
  bool has_waited = false;  // an eviction has waited since a memory threshold was reached

  friend bool operator==(const ReliefState&, const ReliefState&) = default;
};

struct ReliefPlan {
  std::vector<CacheReclaim> reclaim;  // in the order of eviction; empty: nothing can be had now
  Bytes expected;                     // the least fall of the working set, if all orders are carried out completely
  // bytes missing until no memory threshold is reached, minimum reclaim included; 0: none
  Bytes short_by;
  policy::Decision decision;  // acts: there is something to reclaim; waits: there is nothing
};

/// True if memory is near a threshold of memory.available or allocatableMemory.available, or below it. Never for the
/// estimator kAvailable, which counts page cache as free.
bool is_near(const PassConfig& config, const ReliefBounds& bounds, std::span<const Threshold> thresholds,
             const Observations& seen);

/// The amount of `signal` from which `threshold` counts as near; nullopt: without a capacity, or a NaN share.
std::optional<Bytes> near_amount(const ReliefBounds& bounds, const Threshold& threshold, const Observations& seen);

/// The next round; nullopt: no threshold is near. Evaluates earlier rounds by the counters in `summary`, and forgets
/// pods that are not in `active`. The caller carries the round out at once, or drops it.
std::optional<ReliefPlan> plan_relief(const PassConfig& config, const ReliefBounds& bounds, ReliefState& state,
                                      std::span<const Threshold> thresholds, const api::Summary& summary,
                                      std::span<const api::Pod* const> active, Now now);

/// True until an interval after the last round.
bool is_resting(const ReliefBounds& bounds, const ReliefState& state, Now now);

/// True if the due eviction should wait for this round: only if the round can end the shortage, and only once.
bool is_worth_waiting(const ReliefState& state, const ReliefPlan& plan);

/// Records the outcomes of a round.
void record_relief(const ReliefBounds& bounds, ReliefState& state, std::span<const ReliefOutcome> outcomes, Now now);

/// "reclaimed what=page cache of shop/cart-7 …", for the decision of the round.
policy::Reason relief_reason(const ReliefOutcome& outcome, const api::PodKey& pod);

}  // namespace spillway::eviction
