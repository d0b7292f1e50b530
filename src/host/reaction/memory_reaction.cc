#include "host/reaction/memory_reaction.h"

#include "policy/eviction/memory_estimate.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace spillway::host {
namespace {

/// A threshold for all pods together cannot be met first if the node's is at least as high and both have the same
/// limit: pods are only a part of the node's usage.
std::vector<agent::ReactionPlan::Trigger> that_matter(std::vector<agent::ReactionPlan::Trigger> triggers) {
  Bytes node;
  for (const auto& trigger : triggers)
    if (trigger.signal == eviction::Signal::kMemoryAvailable) node = std::max(node, trigger.below);
  std::erase_if(triggers, [&](const auto& trigger) {
    return trigger.signal == eviction::Signal::kAllocatableMemoryAvailable && trigger.below <= node;
  });
  return triggers;
}

std::optional<agent::MemoryLeft> left_of(const std::optional<MemoryReading>& reading) {
  if (!reading) return std::nullopt;
  return agent::MemoryLeft{
      .available = reading->available, .mem_available = reading->mem_available, .swap_left = reading->swap_left};
}

}  // namespace

MemoryReaction::MemoryReaction(runtime::Loop& loop, Links links, telemetry::Log log)
    : loop_(loop), links_(std::move(links)), log_(std::move(log)) {}

Result<std::unique_ptr<MemoryReaction>> MemoryReaction::create(runtime::Loop& loop, const NodeSlice& slice, Links links,
                                                               telemetry::Log log) {
  SPILLWAY_TRY(node, MemoryGauge::open(slice.measured(), slice.memory()));
  SPILLWAY_TRY(reading, node.read(Figures::kEverything));
  if (!reading.left_by(links.memory_watch.estimator))
    return invalid("--memory-estimator", "this machine does not report the usage of \"{}\"",
                   to_string(links.memory_watch.estimator));
  ReactionThread::Gauges gauges{.node = std::move(node), .pods = std::nullopt, .root = std::nullopt};
  if (links.memory_watch.brake == eviction::Brake::kOn) {
    Result<std::unique_ptr<MemoryBrake>> brake = MemoryBrake::create(slice.kubepods());
    if (brake) gauges.brake = *std::move(brake);
    if (!brake) log.warning("pods are not braked", {{"error", brake.error().text()}});
  }
  auto pods = MemoryGauge::open_with_own_limit(slice.kubepods(), slice.memory());
  if (pods) gauges.pods = *std::move(pods);
  if (slice.is_host() && slice.slice().version() == CgroupVersion::kV2) {
    SPILLWAY_TRY(root, RootGauge::open(slice.measured(), slice.memory()));
    gauges.root = std::move(root);
  }
  std::unique_ptr<MemoryReaction> made(  // NOLINT: private constructor
      new MemoryReaction(loop, std::move(links), std::move(log)));
  made->node_memory_ = slice.memory();
  if (auto own = MemoryGauge::open_with_own_limit(slice.kubepods(), slice.memory())) made->pods_ = *std::move(own);
  made->thread_ = std::make_unique<ReactionThread>(std::move(gauges));
  SPILLWAY_TRY(watch, PressureWatch::create(loop, slice, made->thread_->wakers(), made->log_,
                                            made->links_.memory_watch.kernel_notifications
                                                ? PressureWatch::ControllerWakes::kUsed
                                                : PressureWatch::ControllerWakes::kLeftOut));
  made->watch_ = std::move(watch);
  loop.watch_fd(made->thread_->news(), POLLIN, [raw = made.get()] { raw->on_news(); });
  return made;
}

MemoryReaction::~MemoryReaction() {
  loop_.unwatch_fd(thread_->news());
  free_retired();
  thread_.reset();  // before the descriptors that wake it
}

void MemoryReaction::emit(agent::HostEvent event) {
  loop_.post(
      alive_.guard([this, event = std::move(event)]() mutable { links_.receiver.on_host_event(std::move(event)); }));
}

/// True if something of the node is reserved, so that all pods together have a limit below its memory.
bool MemoryReaction::pods_have_less() const {
  if (!pods_) return false;
  const auto reading = pods_->read();
  return reading && reading->limit < node_memory_;
}

void MemoryReaction::publish(agent::ReactionPlan plan) {
  const bool pods_count = pods_have_less();
  PressureWatch::Amounts amounts;
  for (const auto* triggers : {&plan.act, &plan.wake}) {
    for (const agent::ReactionPlan::Trigger& trigger : *triggers) {
      if (trigger.signal == eviction::Signal::kMemoryAvailable) amounts.node.push_back(trigger.below);
      if (trigger.signal == eviction::Signal::kAllocatableMemoryAvailable && pods_count)
        amounts.pods.push_back(trigger.below);
    }
  }
  if (!plan.act.empty()) watch_->set_thresholds(std::move(amounts), plan.memory_estimator);
  if (!pods_count) {
    plan.act = that_matter(std::move(plan.act));
    plan.wake = that_matter(std::move(plan.wake));
  }
  last_ = plan;
  offer(std::move(plan));
}

void MemoryReaction::offer(agent::ReactionPlan plan) {
  free_retired();
  auto armed = std::make_unique<ArmedPlan>();
  armed->plan = std::move(plan);
  for (const agent::ReactionPlan::Candidate& candidate : armed->plan.candidates) {
    armed->targets.push_back(links_.find_target(candidate.uid));
    armed->keys.push_back(candidate.key);
    const std::size_t containers = armed->targets.back() ? armed->targets.back()->container_count() : 0;
    if (containers > armed->container_working_sets.size()) armed->container_working_sets.resize(containers);
  }
  armed->exact.resize(armed->keys.size());
  if (links_.journal != nullptr) {
    if (Result<UniqueFd> copy = links_.journal->duplicate()) armed->journal = *std::move(copy);
  }
  const auto about_pods = [](const auto& trigger) {
    return trigger.signal == eviction::Signal::kAllocatableMemoryAvailable;
  };
  armed->watches_pods =
      std::ranges::any_of(armed->plan.act, about_pods) || std::ranges::any_of(armed->plan.wake, about_pods);
  const auto is_guard = [](const auto& trigger) { return trigger.signal == eviction::Signal::kMemAvailable; };
  armed->needs_everything = armed->plan.memory_estimator != eviction::MemoryEstimator::kWorkingSet ||
                            std::ranges::any_of(armed->plan.act, is_guard);
  reported_ = false;
  out_ = armed.get();
  thread_->offer(std::move(armed));
}

bool MemoryReaction::claim() {
  if (out_ == nullptr) return true;
  int open = ArmedPlan::kOpen;
  if (out_->state.compare_exchange_strong(open, ArmedPlan::kClaimed) || open == ArmedPlan::kClaimed) return true;
  report();
  return false;  // no act until the engine publishes the next plan
}

void MemoryReaction::report() {
  if (out_ != nullptr && !reported_ && out_->state.load() == ArmedPlan::kTaken) {
    reported_ = true;
    acted_ = out_;
    escalation_reported_ = false;
    agent::Reacted event{.uid = out_->plan.candidates[out_->victim].uid,
                         .emergency = out_->emergency,
                         .escalated = false,
                         .node = left_of(out_->node),
                         .pods = left_of(out_->pods),
                         .working_sets = {},
                         .containers = {},
                         .at = out_->at,
                         .took = Duration(out_->took_nanos.load())};
    for (std::size_t i = 0; i < out_->keys.size(); ++i) {
      if (out_->keys[i].measured)
        event.working_sets.emplace_back(out_->plan.candidates[i].uid, Bytes{out_->keys[i].working_set_bytes});
    }
    const ReactionTarget& victim = *out_->targets[out_->victim];
    for (std::size_t i = 0; i < victim.container_count(); ++i) {
      if (const auto& used = out_->container_working_sets[i])
        event.containers.emplace_back(victim.container_name(i), *used);
    }
    emit(std::move(event));
  }
  if (acted_ != nullptr && !escalation_reported_ && acted_->escalated.load()) {
    escalation_reported_ = true;
    agent::Reacted event;
    event.uid = acted_->plan.candidates[acted_->victim].uid;
    event.emergency = true;
    event.escalated = true;
    emit(std::move(event));
  }
}

void MemoryReaction::on_news() {
  std::uint64_t times = 0;
  static_cast<void>(!::read(thread_->news(), &times, sizeof times));
  report();
  if (thread_->take_observation_wanted()) emit(agent::PressureWake{"memory-watch"});
}

void MemoryReaction::refresh_targets() {
  if (!last_ || std::exchange(refresh_pending_, true)) return;
  loop_.post(alive_.guard([this] {
    refresh_pending_ = false;
    // A claimed plan is about to be replaced by the engine; a taken one by what follows from it.
    int open = ArmedPlan::kOpen;
    if (out_->state.compare_exchange_strong(open, ArmedPlan::kClaimed)) offer(*last_);
  }));
}

void MemoryReaction::free_retired() {
  report();  // a taken plan must have been reported before
  for (ArmedPlan* plan = thread_->retired(); plan != nullptr;) {
    const std::unique_ptr<ArmedPlan> owned(std::exchange(plan, plan->next));
    if (owned.get() == acted_) acted_ = nullptr;
    if (owned.get() == out_) out_ = nullptr;
  }
}

}  // namespace spillway::host
