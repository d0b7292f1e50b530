#include "agent/recording/replay_session.h"

#include "agent/eviction/pass_config.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

/// An observation of a part followed by one of the whole node within this time counts as one reading.
constexpr Duration kAnswerMax = milliseconds(250);

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

AgentOptions agent_options(const RecordedNode& node, EvictionOptions eviction) {
  AgentOptions options;
  options.node_name = node.name;
  options.eviction = std::move(eviction);
  return options;
}

MachineInfo machine_of(const RecordedNode& node) {
  MachineInfo machine;
  machine.memory = node.memory;
  return machine;
}

}  // namespace

Result<std::unique_ptr<Replay::Session>> Replay::Session::create(RunState state, EvictionOptions options, As as,
                                                                 std::vector<ReplayOutcome>& outcomes) {
  SPILLWAY_TRY(config, pass_config_of(options, machine_of(state.node), state.node.name, telemetry::Log()));
  return std::unique_ptr<Session>(new Session(std::move(state), std::move(options), as, std::move(config), outcomes));
}

Replay::Session::Session(RunState state, EvictionOptions options, As as, eviction::PassConfig config,
                         std::vector<ReplayOutcome>& outcomes)
    : as_(as),
      options_(agent_options(state.node, std::move(options))),
      machine_(machine_of(state.node)),
      api_("spillway-replay", Rng(1)),
      events_(api_, Rng(2), "spillway-replay", state.node.name),
      context_{options_, machine_, api_, api_, events_, log_, commands_},
      decisions_(nullptr, {}, state.node.acts ? Consequence::kActs : Consequence::kShadow),
      engine_(context_, std::move(config), *this, decisions_, nullptr, state.node.reacts ? this : nullptr, this),
      outcomes_(outcomes) {
  see_all(std::move(state.pods));
  api_.start(state.at);
  engine_.restore(state.snapshot, state.at);
  owed_.observation = state.snapshot.in_flight;
  if (state.snapshot.last_summary) {
    last_whole_ = Observed{.id = 0, .summary = *state.snapshot.last_summary, .depth = ObserveDepth::kWhole};
  }
}

void Replay::Session::run(const InputReceived& received, std::vector<Record> followed) {
  followed_ = std::move(followed);
  answered_ = 0;
  if (as_ == As::kOwn) {
    deliver(received.input, received.at);
    deliver_nested();
  } else {
    for (Record& each : followed_) {
      if (auto* seen = std::get_if<PodsSeen>(&each)) see_pods(std::move(*seen));
    }
    if (wanting_more_ && received.at.mono - wanting_more_->at > kAnswerMax) answer_with_estimate();
    end_overdue(received.at);
    deliver_adapted(received.input, received.at);
    for (const Record& each : followed_) {
      if (const auto* nested = std::get_if<InputReceived>(&each)) deliver_adapted(nested->input, nested->at);
    }
  }
  collect();
  api_.take_api_commands();
}

void Replay::Session::deliver(const EngineInput& input, Now now) {
  std::visit(Overloaded{[&](const EngineStarted&) { engine_.start(now); },
                        [&](const Observed& seen) { engine_.on_observed(seen, now); },
                        [&](const Reclaimed& done) { engine_.on_reclaimed(done, now); },
                        [&](const Relieved& done) { engine_.on_relieved(done, now); },
                        [&](const PressureWake& wake) { engine_.on_pressure_wake(wake, now); },
                        [&](const PodFinished& pod) { engine_.on_pod_finished(pod.uid, now); },
                        [&](const PodsChanged&) { engine_.on_pods_changed(now); },
                        [&](const ObserveEverything&) { engine_.observe_everything(now); },
                        [&](const JournalEntry& entry) { engine_.resume(entry, now); },
                        [&](const Reacted& reacted) { engine_.on_reacted(reacted, now); },
                        [&](EngineTimer timer) { engine_.on_timer(timer, now); }},
             input);
}

/// Gives an engine with other options the input, as far as it applies: answers to questions that it did not ask are
/// left out.
void Replay::Session::deliver_adapted(const EngineInput& input, Now now) {
  collect();
  std::visit(
      Overloaded{[&](const Observed& seen) { see(seen, now); },
                 [&](Reclaimed done) {
                   if (!owed_.reclaim) return;
                   done.id = *std::exchange(owed_.reclaim, std::nullopt);
                   engine_.on_reclaimed(done, now);
                 },
                 [&](Relieved done) {
                   if (!owed_.relief) return;
                   done.id = *std::exchange(owed_.relief, std::nullopt);
                   engine_.on_relieved(done, now);
                 },
                 [&](const PodFinished& pod) {
                   ending_.erase(pod.uid);
                   gone_.insert(pod.uid);
                   engine_.on_pod_finished(pod.uid, now);
                 },
                 [&](const Reacted& reacted) {
                   // The machine acted on what it read, by thresholds of then: here that is one more observation.
                   answer_with_estimate();
                   if (reacted.escalated || !last_whole_) return;
                   reacted_ = &reacted;
                   see({.id = 0, .summary = summary_at(reacted, *last_whole_->summary), .depth = ObserveDepth::kWhole},
                       now);
                   reacted_ = nullptr;
                 },
                 [&](EngineTimer timer) {
                   if (timer == EngineTimer::kObserve && owed_.observation) return;
                   if (timer == EngineTimer::kNoAnswer && !owed_.observation) return;
                   if (timer == EngineTimer::kReclaim) owed_.reclaim.reset();
                   engine_.on_timer(timer, now);
                 },
                 [&](const auto&) { deliver(input, now); }},
      input);
}

/// Gives the engine an observation of the recording, whichever it requested; an engine without a request is woken. The
/// engine may then request the whole machine: if the recording has such an observation next, that is the answer.
void Replay::Session::see(const Observed& seen, Now now) {
  const bool light = seen.summary && seen.depth != ObserveDepth::kWhole;
  if (seen.summary && !light) last_whole_ = seen;
  if (light) answer_with_estimate();
  wanting_more_.reset();
  if (!owed_.observation) engine_.on_timer(EngineTimer::kObserve, now);
  collect();
  if (!owed_.observation) return;
  answer(seen, now);
  if (light && owed_.observation && owed_.observation->depth == ObserveDepth::kWhole) wanting_more_ = {seen, now.mono};
}

void Replay::Session::answer(Observed seen, Now now) {
  const Observe asked = *std::exchange(owed_.observation, std::nullopt);
  if (asked.depth == ObserveDepth::kWhole && seen.depth != ObserveDepth::kWhole && seen.summary) {
    if (auto whole = completed(seen)) seen = *std::move(whole);
    ++estimated_;
  }
  seen.id = asked.id;
  engine_.on_observed(seen, now);
  collect();
}

/// Answers from the light observation, as the recording has no observation of the whole machine for it.
void Replay::Session::answer_with_estimate() {
  const auto light = std::exchange(wanting_more_, std::nullopt);
  if (light && owed_.observation) answer(light->seen, now_);
}

std::optional<Observed> Replay::Session::completed(const Observed& light) const {
  if (!last_whole_) return std::nullopt;
  Observed whole = *last_whole_;
  whole.summary->node.memory = light.summary->node.memory;
  for (const api::ContainerStats& each : light.summary->node.system_containers) {
    auto& known = whole.summary->node.system_containers;
    const auto place = std::ranges::find(known, each.name, &api::ContainerStats::name);
    if (place != known.end()) *place = each;
  }
  return whole;
}

/// Handles events that the recording lacks: ends of pods that the other configuration has evicted, and answers about
/// reclaiming.
void Replay::Session::end_overdue(Now now) {
  std::vector<std::string> due;
  for (const auto& [uid, end] : ending_) {
    if (end <= now.mono) due.push_back(uid);
  }
  for (const std::string& uid : due) {
    ending_.erase(uid);
    gone_.insert(uid);
    engine_.on_pod_finished(uid, now);
    collect();
  }
  if (owed_.reclaim && now.mono - reclaim_since_ >= kReclaimTimeout) {
    owed_.reclaim.reset();
    engine_.on_timer(EngineTimer::kReclaim, now);
    collect();
  }
}

/// Takes the engine's commands to the machine. Only space that was freed in the recording is freed.
void Replay::Session::collect() {
  for (const HostCommand& command : std::exchange(commands_, {})) {
    if (const auto* observe = std::get_if<Observe>(&command)) owed_.observation = *observe;
    if (const auto* reclaim = std::get_if<ReclaimNode>(&command)) {
      owed_.reclaim = reclaim->id;
      reclaim_since_ = now_.mono;
    }
    if (const auto* relieve = std::get_if<RelieveMemory>(&command)) owed_.relief = relieve->id;
  }
}

void Replay::Session::see_all(std::vector<api::Pod> pods) {
  order_.clear();
  pods_.clear();
  for (api::Pod& pod : pods) {
    order_.push_back(pod.metadata.uid);
    pods_.insert_or_assign(pod.metadata.uid, std::move(pod));
  }
}

void Replay::Session::see_pods(PodsSeen seen) const {
  order_ = std::move(seen.uids);
  for (api::Pod& pod : seen.changed) pods_.insert_or_assign(pod.metadata.uid, std::move(pod));
}

std::vector<const api::Pod*> Replay::Session::active() const {
  if (as_ == As::kOwn) {
    if (const Record* next = next_answer(); next != nullptr && std::holds_alternative<PodsSeen>(*next)) {
      see_pods(std::get<PodsSeen>(*next));
      ++answered_;
    }
  }
  std::vector<const api::Pod*> pods;
  for (const std::string& uid : order_) {
    const auto known = pods_.find(uid);
    if (known != pods_.end() && !gone_.contains(uid)) pods.push_back(&known->second);
  }
  return pods;
}

/// The next recorded answer of a port; the engine's own decisions are skipped.
const Record* Replay::Session::next_answer() const {
  for (; answered_ < followed_.size(); ++answered_) {
    const Record& next = followed_[answered_];
    if (!std::holds_alternative<Decided>(next) && !std::holds_alternative<ConditionsChanged>(next)) return &next;
  }
  return nullptr;
}

bool Replay::Session::claim() {
  if (as_ == As::kOther) return true;
  const Record* next = next_answer();
  if (next == nullptr || !std::holds_alternative<Claimed>(*next)) return true;
  ++answered_;
  return std::get<Claimed>(*next).claimed;
}

void Replay::Session::on_ending() {
  const Record* next = as_ == As::kOwn ? next_answer() : nullptr;
  if (next != nullptr && std::holds_alternative<Ending>(*next)) ++answered_;
}

void Replay::Session::deliver_nested() {
  for (const Record* next = next_answer(); next != nullptr; next = next_answer()) {
    const auto* nested = std::get_if<InputReceived>(next);
    if (nested == nullptr) return;
    ++answered_;
    const InputReceived received = *nested;
    deliver(received.input, received.at);
  }
}

void Replay::Session::evict(const eviction::EvictPod& action, Urgency urgency, Now now) {
  if (as_ == As::kOwn) return deliver_nested();
  const std::int64_t grace = std::max(action.grace_period_seconds, kStopSecondsMin);
  const Instant end = now.mono + (urgency == Urgency::kEmergency ? Duration{} : Duration(seconds(grace)));
  const auto [known, is_new] = ending_.emplace(action.uid, end);
  if (!is_new) known->second = std::min(known->second, end);
}

void Replay::Session::kill_now(const std::string& uid) {
  if (as_ == As::kOwn) return deliver_nested();
  if (const auto known = ending_.find(uid); known != ending_.end()) known->second = now_.mono;
}

/// Only the machine measured the fall of memory between two observations: the recorded emergency flag is kept.
void Replay::Session::on_decision(const JournalEntry& entry) {
  JournalEntry made = entry;
  if (reacted_ != nullptr && made.eviction && made.eviction->uid == reacted_->uid) made.emergency = reacted_->emergency;
  outcomes_.push_back(outcome_of(made, now_));
}

void Replay::Session::on_conditions(const eviction::ConditionSet& conditions) {
  outcomes_.push_back(outcome_of(conditions, now_));
}

}  // namespace spillway::agent
