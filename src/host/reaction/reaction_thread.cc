#include "host/reaction/reaction_thread.h"

#include "agent/eviction/fall_rate.h"
#include "runtime/clock.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace spillway::host {
namespace {

using runtime::RealClock;

/// The work after a kill costs about as much as the kill, so it waits for the victim's exit, or that long.
constexpr Duration kQuietLimit = milliseconds(200);

void ring(int eventfd) noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(eventfd, &one, sizeof one));
}

/// Touches the stack's pages, so that they are in memory before they are needed.
void touch_stack() noexcept {
  std::array<volatile char, 65'536> room;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (std::size_t i = 0; i < room.size(); i += 4096) room[i] = 0;
}

/// Runs the kill path with an empty target, so that its code and data are in memory.
void rehearse_kill() noexcept {
  const ReactionTarget nobody;
  DyingProcesses none;
  nobody.hold_first(none);
  nobody.hold_all(none);
  nobody.terminate();
  nobody.kill(none);
  nobody.give_processor();
}

}  // namespace

ReactionThread::ReactionThread(Gauges gauges)
    : gauges_(std::move(gauges)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      control_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      news_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      release_(news_.get()) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = tag(Source::kControl, control_.get());
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, control_.get(), &event);
  thread_ = std::thread([this] { run(); });
}

ReactionThread::~ReactionThread() {
  stop_.store(true);
  ring(control_.get());
  thread_.join();
  if (current_ != acted_) delete current_;  // NOLINT(cppcoreguidelines-owning-memory): lists of raw owners
  delete acted_;                            // NOLINT(cppcoreguidelines-owning-memory)
  delete offered_.load();                   // NOLINT(cppcoreguidelines-owning-memory)
  for (ArmedPlan* plan = retired_.load(); plan != nullptr;) {
    delete std::exchange(plan, plan->next);  // NOLINT(cppcoreguidelines-owning-memory)
  }
}

void ReactionThread::offer(std::unique_ptr<ArmedPlan> plan) {
  const std::unique_ptr<ArmedPlan> never_adopted(offered_.exchange(plan.release()));
  ring(control_.get());
}

void ReactionThread::retire(ArmedPlan* plan) noexcept {
  plan->next = retired_.load();
  while (!retired_.compare_exchange_weak(plan->next, plan)) {
  }
}

void ReactionThread::adopt() noexcept {
  ArmedPlan* next = offered_.exchange(nullptr);
  if (next == nullptr) return;
  if (current_ != nullptr && current_ != acted_) retire(current_);
  current_ = next;
  wake_reached_ = 0;
  if (acted_ != nullptr && !next->plan.act.empty()) {  // the engine has seen the end of the victim
    retire(std::exchange(acted_, nullptr));
    quiet_until_.reset();
  }
  // A rehearsal: code and files are in memory before they are needed.
  static_cast<void>(confirm());
  static_cast<void>(choose());
  rehearse_kill();
  release_.brace();
  release_.relax();
  for (agent::ReactionPlan::Candidate& candidate : next->plan.candidates) candidate.entry.fill({}, false, 0);
}

void ReactionThread::wait(Duration limit) noexcept {
  const auto whole = std::chrono::floor<seconds>(limit);
  timespec time{};
  time.tv_sec = whole.count();
  time.tv_nsec = (limit - whole).count();
  std::array<epoll_event, 8> events;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  int ready = ::epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()), &time, nullptr);
  if (ready < 0 && errno == ENOSYS) {  // before Linux 5.11
    const auto millis = std::chrono::ceil<milliseconds>(limit);
    ready =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), static_cast<int>(millis.count()));
  }
  for (int i = 0; i < ready; ++i) {
    const std::uint64_t data = events[static_cast<std::size_t>(i)].data.u64;
    if (static_cast<Source>(data & 0xffffffffU) != Source::kMemoryEvents) continue;
    std::array<char, 4096> unread;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    while (::read(static_cast<int>(data >> 32), unread.data(), unread.size()) > 0) {
    }
  }
}

ReactionThread::Seen ReactionThread::read_gauges(Depth depth) noexcept {
  Seen seen;
  const bool plain = depth == Depth::kWatched && (current_ == nullptr || !current_->needs_everything);
  const Figures figures = plain ? Figures::kWorkingSet : Figures::kEverything;
  if (auto node = gauges_.node.read(figures)) seen.node = *node;
  if (gauges_.pods && (depth == Depth::kAll || gauges_.brake || (current_ != nullptr && current_->watches_pods))) {
    if (auto pods = gauges_.pods->read(figures)) seen.pods = *pods;
  }
  return seen;
}

eviction::MemoryEstimator ReactionThread::estimator() const noexcept {
  const ArmedPlan* plan = current_ != nullptr ? current_ : acted_;
  return plan == nullptr ? eviction::MemoryEstimator::kWorkingSet : plan->plan.memory_estimator;
}

std::optional<Bytes> ReactionThread::left(eviction::Signal signal, const Seen& seen) const noexcept {
  const auto& reading = signal == eviction::Signal::kAllocatableMemoryAvailable ? seen.pods : seen.node;
  if (!reading) return std::nullopt;
  return reading->left_by(signal == eviction::Signal::kMemAvailable ? eviction::MemoryEstimator::kAvailable
                                                                    : estimator());
}

bool ReactionThread::is_met(const agent::ReactionPlan::Trigger& trigger, const Seen& seen) const noexcept {
  const std::optional<Bytes> now = left(trigger.signal, seen);
  return now && *now < trigger.below;
}

bool ReactionThread::act_is_met(const Seen& seen) const noexcept {
  return std::ranges::any_of(current_->plan.act, [&](const auto& trigger) { return is_met(trigger, seen); });
}

std::optional<ReactionThread::Seen> ReactionThread::confirm() noexcept {
  Seen again = read_gauges(Depth::kAll);
  if (gauges_.root && again.node) {
    if (auto exact = gauges_.root->read()) {
      exact->mem_available = again.node->mem_available;
      exact->swap_left = again.node->swap_left;
      again.node = *exact;
    }
  }
  return act_is_met(again) ? std::optional(again) : std::nullopt;
}

std::optional<std::size_t> ReactionThread::choose() noexcept {
  ArmedPlan& plan = *current_;
  const auto measure = [&](std::size_t i, Bytes inactive) {
    eviction::MemoryStanding& key = plan.keys[i];
    const auto usage = plan.targets[i] ? plan.targets[i]->usage() : std::nullopt;
    key.measured = usage.has_value();
    key.working_set_bytes = usage ? std::max<std::int64_t>(0, (*usage - inactive).count()) : 0;
  };
  for (std::size_t i = 0; i < plan.keys.size(); ++i) {
    plan.exact[i] = 0;
    measure(i, plan.plan.candidates[i].inactive_file);
  }
  for (;;) {  // ends, because each turn makes one more figure exact
    const auto first = eviction::first_for_memory(plan.keys);
    if (!first || !plan.keys[*first].measured) return std::nullopt;
    if (std::exchange(plan.exact[*first], 1) != 0) return first;
    measure(*first, plan.targets[*first]->inactive_file().value_or(Bytes{}));
  }
}

Bytes ReactionThread::blind_zone(const Seen& seen) const noexcept {
  const Bytes configured = acted_ != nullptr ? acted_->plan.blind_zone : current_->plan.blind_zone;
  if (!seen.node || !seen.node->mem_available) return configured;
  // The amount by which the estimator exceeds MemAvailable; zero for that estimator itself.
  if (estimator() == eviction::MemoryEstimator::kAvailable) return configured;
  return std::max(configured, seen.node->available - *seen.node->mem_available);
}

void ReactionThread::notify() noexcept {
  if (!quiet_until_) ring(news_.get());
}

void ReactionThread::act(std::size_t victim, const Seen& seen, Instant since) noexcept {
  ArmedPlan& plan = *current_;
  const Now now = RealClock::read();
  const Bytes available = left(eviction::Signal::kMemoryAvailable, seen).value_or(Bytes{});
  const Bytes fall = fall_.steepest_per_second(now.mono, agent::kRecentFall);
  plan.victim = victim;
  plan.emergency = left(eviction::Signal::kMemoryAvailable, seen) &&
                   agent::is_emergency(available, blind_zone(seen), fall, agent::kHardGrace + agent::kKillMargin);
  plan.node = seen.node;
  plan.pods = seen.pods;
  plan.at = now.wall;
  plan.targets[victim]->measure_containers(Bytes{plan.keys[victim].working_set_bytes}, plan.container_working_sets);
  agent::PreparedEntry& entry = plan.plan.candidates[victim].entry;
  entry.fill(now.wall, plan.emergency, available.count());
  int open = ArmedPlan::kOpen;
  if (!plan.state.compare_exchange_strong(open, ArmedPlan::kTaken)) return;  // the engine was quicker
  if (plan.journal) static_cast<void>(!::write(plan.journal.get(), entry.line().data(), entry.line().size()));
  const ReactionTarget& target = *plan.targets[victim];
  DyingProcesses dying;
  if (plan.emergency) {
    target.hold_all(dying);
    target.kill(dying);
  } else {
    target.hold_first(dying);
    target.terminate();
  }
  release_.release(std::move(dying));
  target.give_processor();
  plan.took_nanos.store((RealClock::read_mono() - since).count());
  if (acted_ != nullptr && acted_ != current_) retire(acted_);
  acted_ = current_;
  acted_at_ = now.mono;
  grace_end_ = now.mono + agent::kHardGrace;
  quiet_until_ = now.mono + kQuietLimit;
}

void ReactionThread::consider(const Seen& seen, Instant now) noexcept {
  std::uint64_t reached = 0;
  for (std::size_t i = 0; i < current_->plan.wake.size() && i < 64; ++i)
    if (is_met(current_->plan.wake[i], seen)) reached |= std::uint64_t{1} << i;
  bool wake = std::exchange(wake_reached_, reached) != reached;
  if (!act_is_met(seen)) victim_ = agent::BrakeVictim::kSomebody;
  if (current_->state.load() == ArmedPlan::kOpen && act_is_met(seen)) {
    if (const std::optional<Seen> certain = confirm()) {
      release_.brace();
      const std::optional<std::size_t> victim = choose();
      victim_ = victim ? agent::BrakeVictim::kSomebody : agent::BrakeVictim::kNobody;
      if (victim) act(*victim, *certain, now);
      release_.relax();
      if (!victim && now - reported_at_ >= agent::kHelplessInterval) {
        reported_at_ = now;
        wake = true;
      }
    }
  }
  if (!wake) return;
  observation_wanted_.store(true);
  notify();
}

/// Memory that continues to fall is a case for the engine, which may have to name another victim.
bool ReactionThread::may_stay_quiet(const Seen& seen, Instant now) const noexcept {
  if (now >= *quiet_until_) return false;
  if (acted_ == nullptr || !acted_->node || !seen.node || now - acted_at_ < kQuietLimit / 4) return true;
  return seen.node->available > acted_->node->available;
}

/// A dying pod loses its grace if memory would not last for the rest of it.
void ReactionThread::follow_up(const Seen& seen, Instant now) noexcept {
  if (acted_ == nullptr || acted_->emergency || acted_->escalated.load() || now >= grace_end_) return;
  const std::optional<Bytes> available = left(eviction::Signal::kMemoryAvailable, seen);
  if (!available) return;
  const Bytes fall = fall_.steepest_per_second(now, std::min(agent::kRecentFall, now - acted_at_));
  if (now - acted_at_ < agent::kBusyInterval || fall <= Bytes{0}) return;
  if (!agent::is_emergency(*available, blind_zone(seen), fall, grace_end_ - now + agent::kKillMargin)) return;
  release_.brace();
  DyingProcesses dying;
  const ReactionTarget& target = *acted_->targets[acted_->victim];
  target.hold_all(dying);
  target.kill(dying);
  release_.release(std::move(dying));
  target.give_processor();
  acted_->escalated.store(true);
  quiet_until_.reset();
  notify();
}

/// Leaves the brake unchanged while its inputs are missing: nothing was read, or a victim is dying.
void ReactionThread::steer_brake(const Seen& seen, Instant now) noexcept {
  if (!gauges_.brake || current_ == nullptr || !seen.pods) return;
  std::optional<Bytes> headroom;
  for (const agent::ReactionPlan::Trigger& trigger : current_->plan.act) {
    const std::optional<Bytes> shown = left(trigger.signal, seen);
    if (shown) headroom = std::min(*shown - trigger.below, headroom.value_or(*shown - trigger.below));
  }
  if (!headroom) return;
  gauges_.brake->set(agent::brake_limit({.headroom = *headroom,
                                         .pods_usage = seen.pods->usage,
                                         .fall_per_second = fall_.steepest_per_second(now, agent::kFallMemory),
                                         .limit = gauges_.brake->limit(),
                                         .victim = victim_}));
}

Duration ReactionThread::interval(const Seen& seen, Instant now) const noexcept {
  if (current_ == nullptr) return seconds(1);
  const agent::ObserveOptions& options = current_->plan.observe;
  std::optional<Bytes> headroom;
  bool pressing = false;
  for (const auto* triggers : {&current_->plan.act, &current_->plan.wake}) {
    for (const agent::ReactionPlan::Trigger& trigger : *triggers) {
      const std::optional<Bytes> shown = left(trigger.signal, seen);
      if (!shown) continue;
      const Bytes room = *shown - trigger.below;
      if (room >= Bytes{0}) headroom = std::min(room, headroom.value_or(room));
      if (room < Bytes{0} && triggers == &current_->plan.act) pressing = true;
    }
  }
  Duration limit = options.interval_max;
  if (headroom) limit = agent::observe_interval(*headroom, fall_.steepest_per_second(now, agent::kFallMemory), options);
  if (pressing)
    limit = std::min(limit, current_->state.load() == ArmedPlan::kOpen ? options.interval_min : agent::kBusyInterval);
  if (acted_ != nullptr && now < grace_end_ + agent::kKillMargin) limit = std::min(limit, agent::kBusyInterval);
  return std::max(limit, options.interval_min);
}

void ReactionThread::run() noexcept {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  ::prctl(PR_SET_NAME, "memory-watch", 0UL, 0UL, 0UL);
  rank_.store(get_ahead());
  touch_stack();
  Duration sleep{};
  while (!stop_.load()) {
    wait(sleep);
    adopt();
    const Instant now = RealClock::read_mono();
    const Seen seen = read_gauges(Depth::kWatched);
    readings_.fetch_add(1, std::memory_order_relaxed);
    if (const auto available = left(eviction::Signal::kMemoryAvailable, seen)) fall_.add(*available, now);
    if (quiet_until_ && !may_stay_quiet(seen, now)) {
      quiet_until_.reset();
      notify();
    }
    if (current_ != nullptr) {
      follow_up(seen, now);
      consider(seen, now);
      steer_brake(seen, now);
    }
    sleep = interval(seen, now);
  }
}

}  // namespace spillway::host
