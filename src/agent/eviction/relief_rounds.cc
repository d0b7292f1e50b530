#include "agent/eviction/relief_rounds.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

/// A machine without an answer by then counts as stuck: the round is given up, and a later answer is ignored.
constexpr Duration kRoundMax = minutes(1);
/// A pod that reads files all the time leads to a round each second. The journal and the log get one in ten.
constexpr Duration kRecordInterval = seconds(10);
/// The last round is part of `explain` for so long.
constexpr Duration kShownFor = minutes(1);
/// With less reclaimable memory than this, evictions do not wait for relief, and the machine may act by itself.
constexpr Bytes kWorthWaiting = mebibytes(32);

}  // namespace

bool ReliefRounds::is_due(std::span<const eviction::Threshold> thresholds, const eviction::Observations& seen,
                          Now now) const {
  return is_on_ && !under_way_ && !is_resting(bounds_, memory_.state, now) &&
         is_near(config_, bounds_, thresholds, seen);
}

void ReliefRounds::begin(std::span<const eviction::Threshold> thresholds, const api::Summary& summary,
                         std::span<const api::Pod* const> active, std::uint64_t& last_id, Now now) {
  if (under_way_ && now.mono - under_way_->since >= kRoundMax) {
    context_.log.warning("the machine has not reclaimed page cache in time", {{"id", under_way_->id}});
    under_way_.reset();
  }
  if (!is_on_ || under_way_ || is_resting(bounds_, memory_.state, now)) return;
  auto plan = plan_relief(config_, bounds_, memory_.state, thresholds, summary, active, now);
  memory_.expected = plan ? plan->expected : Bytes{};
  if (plan && !plan->reclaim.empty()) send(*std::move(plan), active, last_id, now);
}

bool ReliefRounds::wait(eviction::PassResult& result, const api::Summary& summary,
                        std::span<const api::Pod* const> active, std::uint64_t& last_id, Now now) {
  if (!is_on_) return false;
  auto plan = plan_relief(config_, bounds_, memory_.state, result.state.thresholds, summary, active, now);
  if (!plan) return false;
  if (under_way_) plan->expected = memory_.expected;
  if (!is_worth_waiting(memory_.state, *plan)) return false;
  if (!under_way_) {
    if (is_resting(bounds_, memory_.state, now)) return false;
    send(*std::move(plan), active, last_id, now);
  }
  memory_.state.has_waited = true;
  memory_.wait_ends = now.mono + kReliefWait;
  result.pending.reset();
  result.decision.verdict = policy::Verdict::kWaits;
  return true;
}

void ReliefRounds::send(eviction::ReliefPlan plan, std::span<const api::Pod* const> active, std::uint64_t& last_id,
                        Now now) {
  under_way_ = UnderWay{.id = ++last_id, .since = now.mono, .decision = std::move(plan.decision), .pods = {}};
  for (const api::Pod* pod : active) {
    const auto asked = std::ranges::find(plan.reclaim, pod->metadata.uid, &eviction::CacheReclaim::uid);
    if (asked != plan.reclaim.end()) under_way_->pods.emplace(pod->metadata.uid, pod->key());
  }
  memory_.state.last_round = now.mono;
  context_.host_commands.emplace_back(RelieveMemory{under_way_->id, std::move(plan.reclaim)});
}

bool ReliefRounds::may_wait() const {
  return is_on_ && !memory_.state.has_waited && memory_.expected >= kWorthWaiting;
}

void ReliefRounds::add_triggers(ReactionPlan& plan, std::span<const eviction::Threshold> thresholds,
                                const eviction::Observations& seen) const {
  if (!is_on_) return;
  for (const eviction::Threshold& threshold : thresholds) {
    if (const auto near = near_amount(bounds_, threshold, seen)) plan.wake.push_back({threshold.signal, *near});
  }
}

std::optional<ReliefResult> ReliefRounds::on_relieved(const Relieved& event, Now now) {
  if (!under_way_ || under_way_->id != event.id) return std::nullopt;
  const UnderWay done = *std::exchange(under_way_, std::nullopt);
  record_relief(bounds_, memory_.state, event.outcomes, now);
  ReliefResult result{.decision = done.decision, .freed = {}};
  for (const eviction::ReliefOutcome& outcome : event.outcomes) {
    const auto pod = done.pods.find(outcome.uid);
    if (pod == done.pods.end()) continue;
    result.freed += outcome.freed;
    result.decision.reasons.push_back(relief_reason(outcome, pod->second));
  }
  result.is_worth_recording = !memory_.recorded_at || now.mono - *memory_.recorded_at >= kRecordInterval;
  if (result.is_worth_recording) {
    memory_.recorded_at = now.mono;
    context_.log.info("page cache reclaimed before an eviction",
                      {{"freed_bytes", result.freed.count()}, {"reasons", policy::render(result.decision.reasons)}});
  }
  memory_.wait_ends.reset();
  last_ = result.decision;
  return result;
}

void ReliefRounds::add_to(policy::Decision& decision, Now now) const {
  if (!last_ || now.wall - last_->at > kShownFor) return;
  decision.reasons.insert(decision.reasons.end(), last_->reasons.begin(), last_->reasons.end());
}

}  // namespace spillway::agent
