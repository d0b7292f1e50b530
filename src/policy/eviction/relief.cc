#include "policy/eviction/relief.h"

#include "policy/eviction/reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace spillway::eviction {
namespace {

using policy::Reason;
using policy::ReasonCode;

constexpr std::int64_t kNearShare = 20;        // a twentieth of the memory
constexpr std::int64_t kStayedShare = 8;       // less than an eighth of the amount was freed
constexpr std::int64_t kReturnedShare = 4;     // more than a quarter of the amount was read again
constexpr std::int32_t kRestDoublingsMax = 8;  // after more doublings rest_max applies in any case

bool is_relieved(Signal signal) {
  return signal == Signal::kMemoryAvailable || signal == Signal::kAllocatableMemoryAvailable;
}

/// The amount of memory from a value and the capacity of the signal.
std::optional<Bytes> bytes_of(const std::optional<ThresholdValue>& value, const Observation& seen) {
  if (!value) return Bytes{};
  const auto amount = amount_of(*value, seen.capacity);
  return amount ? std::optional(amount->bytes()) : std::nullopt;
}

/// The distance from the thresholds of memory.
struct Distance {
  const Threshold* nearest = nullptr;  // the memory threshold that is exceeded most, or is nearest
  Bytes wanted;                        // until none is near
  Bytes short_by;                      // bytes to free until no threshold is reached, minimum reclaim included
};

Distance distance_of(const PassConfig& config, const ReliefBounds& bounds, std::span<const Threshold> thresholds,
                     const Observations& seen) {
  Distance distance;
  if (config.memory_estimator == MemoryEstimator::kAvailable) return distance;
  for (const Threshold& threshold : thresholds) {
    const std::optional<Bytes> near = near_amount(bounds, threshold, seen);
    if (!near) continue;
    const Observation& observed = *seen[threshold.signal];
    const Bytes available{observed.available};
    if (available >= *near) continue;
    if (distance.nearest == nullptr || *near - available > distance.wanted) distance.nearest = &threshold;
    distance.wanted = std::max(distance.wanted, *near - available);
    const std::optional<Bytes> limit = bytes_of(threshold.value, observed);
    if (!limit || available >= *limit) continue;
    const Bytes more = bytes_of(threshold.min_reclaim, observed).value_or(Bytes{});
    distance.short_by = std::max(distance.short_by, *limit + more - available);
  }
  return distance;
}

bool still_rests(const PodRelief& pod, Instant now) {
  return pod.end != ReliefEnd::kNone && now < pod.rests_until;
}

/// Ends the relief of a pod whose cache was not freed, or was read again.
void evaluate(const ReliefBounds& bounds, PodRelief& pod, const api::FileCache& cache, Instant now) {
  if (pod.refaulted && cache.refaulted_bytes) {
    const Bytes counted{static_cast<std::int64_t>(*cache.refaulted_bytes)};
    pod.returned = std::max(counted - *pod.refaulted, Bytes{});
  }
  if (pod.end != ReliefEnd::kNone) return;
  const bool stayed = pod.last_freed.count() < pod.last_asked.count() / kStayedShare;
  const bool returned = pod.returned.count() > pod.freed.count() / kReturnedShare;
  if (!stayed && !returned) {
    if (now - pod.since >= bounds.window) pod.rests = 0;
    return;
  }
  pod.end = returned ? ReliefEnd::kReturned : ReliefEnd::kStayed;
  const auto doubled = bounds.rest_min * (std::int64_t{1} << std::min(pod.rests, kRestDoublingsMax));
  pod.rests_until = now + std::min<Duration>(doubled, bounds.rest_max);
  ++pod.rests;
}

Reason cache_reason(ReasonCode code, const api::FileCache& cache) {
  return {code,
          {{"inactive_bytes", static_cast<std::int64_t>(cache.inactive_bytes)},
           {"active_bytes", static_cast<std::int64_t>(cache.active_bytes)}}};
}

Reason rest_reason(const PodRelief& pod, const api::FileCache& cache, Instant now) {
  const bool returned = pod.end == ReliefEnd::kReturned;
  Reason reason = cache_reason(returned ? ReasonCode::kCacheReturned : ReasonCode::kCacheStayed, cache);
  reason.facts.push_back({"freed_bytes", returned ? pod.freed.count() : pod.last_freed.count()});
  if (returned) reason.facts.push_back({"returned_bytes", pod.returned.count()});
  if (!returned) reason.facts.push_back({"asked_bytes", pod.last_asked.count()});
  reason.facts.push_back({"rests_seconds", std::chrono::duration_cast<seconds>(pod.rests_until - now).count()});
  return reason;
}

/// Collects the orders of one round, pod after pod.
class Round {
 public:
  Round(const ReliefBounds& bounds, ReliefState& state, Bytes wanted, Instant now)
      : bounds_(bounds), state_(state), wanted_(wanted), left_(bounds.node_bytes_max), now_(now) {}

  /// Plans the reclaim of the pod's cache; the reason explains the amount.
  Reason add(const MeasuredPod& measured) {
    const bool is_measured = measured.stats != nullptr && measured.stats->file_cache.has_value();
    if (!is_measured) return {ReasonCode::kObservationMissing, {}};
    const api::FileCache& cache = *measured.stats->file_cache;
    const std::string& uid = measured.pod->metadata.uid;
    const auto known = state_.pods.find(uid);
    if (known != state_.pods.end()) {
      evaluate(bounds_, known->second, cache, now_);
      if (still_rests(known->second, now_)) return rest_reason(known->second, cache, now_);
    }
    if (api::is_critical(*measured.pod)) return cache_reason(ReasonCode::kCriticalPodSpared, cache);
    const Bytes inactive{static_cast<std::int64_t>(cache.inactive_bytes)};
    const Bytes active{static_cast<std::int64_t>(cache.active_bytes)};
    const Bytes there = inactive + active - bounds_.kept_bytes;
    if (there <= Bytes{}) return cache_reason(ReasonCode::kCacheSmall, cache);
    if (wanted_ <= Bytes{} || left_ <= Bytes{}) return cache_reason(ReasonCode::kRankedLater, cache);
    // The kernel takes inactive pages first, which are not part of the working set.
    const Bytes bytes = std::min({there, bounds_.pod_bytes_max, left_, inactive + wanted_});
    const Bytes falls = std::max(bytes - inactive, Bytes{});
    left_ -= bytes;
    wanted_ -= falls;
    expected_ += falls;
    reclaim_.push_back({uid, bytes});
    Reason reason = cache_reason(ReasonCode::kCacheTaken, cache);
    reason.facts.push_back({"asked_bytes", bytes.count()});
    return reason;
  }

  Bytes expected() const { return expected_; }

  std::vector<CacheReclaim> take() { return std::move(reclaim_); }

 private:
  const ReliefBounds& bounds_;
  ReliefState& state_;
  Bytes wanted_;
  Bytes left_;
  Instant now_;
  Bytes expected_;
  std::vector<CacheReclaim> reclaim_;
};

void forget_gone(ReliefState& state, std::span<const api::Pod* const> active) {
  std::set<std::string_view> there;
  for (const api::Pod* pod : active) there.insert(pod->metadata.uid);
  std::erase_if(state.pods, [&](const auto& entry) { return !there.contains(entry.first); });
}

}  // namespace

std::optional<Bytes> near_amount(const ReliefBounds& bounds, const Threshold& threshold, const Observations& seen) {
  if (!is_relieved(threshold.signal) || !seen[threshold.signal]) return std::nullopt;
  const Observation& observed = *seen[threshold.signal];
  const std::optional<Bytes> limit = bytes_of(threshold.value, observed);
  if (!limit) return std::nullopt;
  return *limit + std::max(bounds.near_bytes_min, Bytes{observed.capacity / kNearShare});
}

bool is_near(const PassConfig& config, const ReliefBounds& bounds, std::span<const Threshold> thresholds,
             const Observations& seen) {
  return distance_of(config, bounds, thresholds, seen).nearest != nullptr;
}

std::optional<ReliefPlan> plan_relief(const PassConfig& config, const ReliefBounds& bounds, ReliefState& state,
                                      std::span<const Threshold> thresholds, const api::Summary& summary,
                                      std::span<const api::Pod* const> active, Now now) {
  const Observations seen = observe(summary, config.memory_estimator);
  const Distance distance = distance_of(config, bounds, thresholds, seen);
  if (distance.short_by == Bytes{}) state.has_waited = false;
  if (distance.nearest == nullptr) return std::nullopt;
  forget_gone(state, active);

  ReliefPlan plan;
  plan.short_by = distance.short_by;
  plan.decision.at = now.wall;
  plan.decision.by = config.node;
  plan.decision.area = policy::Area::kEviction;
  plan.decision.action = "relieve";
  plan.decision.subject = {.kind = "Node", .ns = {}, .name = config.node, .uid = {}};
  Reason near = threshold_reason(ReasonCode::kThresholdNear, *distance.nearest, seen);
  near.facts.push_back({"wanted_bytes", distance.wanted.count()});
  plan.decision.reasons.push_back(std::move(near));

  const std::vector<MeasuredPod> pods = join_stats(active, summary.pods);
  const std::vector<UsageRank> ranks = rank_for_memory(pods);
  Round round(bounds, state, distance.wanted, now.mono);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Reason reason = round.add(ranks[i].measured);
    if (plan.decision.candidates.size() >= kCandidatesMax) continue;
    plan.decision.candidates.push_back(
        {subject_of(*ranks[i].measured.pod), std::move(reason),
         i + 1 < ranks.size() ? std::string(deciding_key(ranks[i], ranks[i + 1])) : std::string()});
  }
  plan.decision.candidates_total = static_cast<std::int64_t>(ranks.size());
  plan.expected = round.expected();
  plan.reclaim = round.take();
  plan.decision.verdict = plan.reclaim.empty() ? policy::Verdict::kWaits : policy::Verdict::kActs;
  return plan;
}

bool is_resting(const ReliefBounds& bounds, const ReliefState& state, Now now) {
  return state.last_round && now.mono - *state.last_round < bounds.interval;
}

bool is_worth_waiting(const ReliefState& state, const ReliefPlan& plan) {
  return !state.has_waited && plan.short_by > Bytes{} && plan.expected >= plan.short_by;
}

void record_relief(const ReliefBounds& bounds, ReliefState& state, std::span<const ReliefOutcome> outcomes, Now now) {
  for (const ReliefOutcome& outcome : outcomes) {
    const auto [entry, is_new] = state.pods.try_emplace(outcome.uid);
    PodRelief& pod = entry->second;
    const bool begins = is_new || pod.end != ReliefEnd::kNone || now.mono - pod.since >= bounds.window;
    if (begins) {
      pod = PodRelief{.since = now.mono,
                      .freed = {},
                      .last_asked = {},
                      .last_freed = {},
                      .refaulted = outcome.refaulted,
                      .returned = {},
                      .end = ReliefEnd::kNone,
                      .rests_until = {},
                      .rests = pod.rests};
    }
    pod.freed += outcome.freed;
    pod.last_asked = outcome.asked;
    pod.last_freed = outcome.freed;
  }
}

Reason relief_reason(const ReliefOutcome& outcome, const api::PodKey& pod) {
  Reason reason{ReasonCode::kReclaimed,
                {{"what", fmt::format("page cache of {}", pod.text())},
                 {"asked_bytes", outcome.asked.count()},
                 {"freed_bytes", outcome.freed.count()}}};
  if (!outcome.problem.empty()) reason.facts.push_back({"problem", outcome.problem});
  return reason;
}

}  // namespace spillway::eviction
