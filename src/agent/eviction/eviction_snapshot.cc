// Snapshots of the eviction engine for a witness, and their restoration in another instance.
#include "agent/eviction/eviction_engine.h"

#include <utility>

namespace spillway::agent {

WitnessedStep EvictionEngine::take_down(EngineInputRef input, Now now) {
  if (witness_ == nullptr) return WitnessedStep(nullptr);
  if (!reclaim_ && !relief_.is_under_way() && witness_->wants_snapshot())
    witness_->on_snapshot(snapshot(), pods_.active(), now);
  witness_->on_input(input, now);
  return WitnessedStep(witness_);
}

EvictionSnapshot EvictionEngine::snapshot() const {
  return {.state = state_,
          .fall = readings_.fall(),
          .forecast = readings_.forecast(),
          .dying = victims_.dying(),
          .given_up = victims_.given_up(),
          .last_summary = readings_.summary(),
          .seen = readings_.seen(),
          .reached_at_pass = reached_at_pass_,
          .last_pass = last_pass_,
          .threshold_event_at = threshold_event_at_,
          .pass_wanted = pass_wanted_,
          .nobody_to_evict = nobody_to_evict_,
          .last_id = last_id_,
          .in_flight = in_flight_,
          .wake_pending = wake_pending_,
          .plan_waits = plan_timer_.has_value(),
          .reaction_watches = reaction_watches_,
          .last_failed = last_failed_,
          .crossed = log_.crossed(),
          .relief = relief_.memory()};
}

void EvictionEngine::restore(const EvictionSnapshot& snapshot, Now now) {
  const eviction::PassState fresh = std::exchange(state_, snapshot.state);
  if (snapshot.state.layout) {
    adopt_layout(config_, *snapshot.state.layout, state_);
  } else {
    state_.thresholds = fresh.thresholds;
  }
  const auto is_gone = [this](const eviction::Threshold& each) { return !contains(state_.thresholds, each); };
  std::erase_if(state_.crossed_before, is_gone);
  readings_.restore(snapshot.fall, snapshot.forecast, snapshot.seen, snapshot.last_summary);
  victims_.restore(snapshot.dying, snapshot.given_up);
  reached_at_pass_ = snapshot.reached_at_pass;
  std::erase_if(reached_at_pass_, is_gone);
  last_pass_ = snapshot.last_pass;
  threshold_event_at_ = snapshot.threshold_event_at;
  pass_wanted_ = snapshot.pass_wanted;
  nobody_to_evict_ = snapshot.nobody_to_evict;
  last_id_ = snapshot.last_id;
  in_flight_ = snapshot.in_flight;
  wake_pending_ = snapshot.wake_pending;
  if (snapshot.plan_waits) plan_timer_ = set_timer(EngineTimer::kPlan, now.mono);
  reaction_watches_ = snapshot.reaction_watches;
  last_failed_ = snapshot.last_failed;
  log_.restore(snapshot.crossed);
  relief_.restore(snapshot.relief);
}

}  // namespace spillway::agent
