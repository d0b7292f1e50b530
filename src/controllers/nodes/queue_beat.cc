#include "controllers/nodes/queue_beat.h"

#include <algorithm>
#include <utility>

namespace spillway::controllers {

QueueBeat::QueueBeat(client::ApiClient& client, lifecycle::NodeMonitor& monitor, const lifecycle::Remedies& remedies,
                     Duration period, Handle handle)
    : client_(client),
      monitor_(monitor),
      stopped_lets_through_(remedies.stopped_limiter == lifecycle::RateLimiter::Stopped::kReportsOneBurstAtZero),
      period_(period),
      handle_(std::move(handle)) {}

void QueueBeat::arm(Now now) {
  if (timer_) return;
  const bool waiting = std::ranges::any_of(monitor_.zones(), [this](const auto& zone) {
    return !zone.second.queue.empty() && (stopped_lets_through_ || zone.second.queue.limiter().effective_rate() > 0);
  });
  if (!waiting) return;
  const auto ticks = (now.mono - ticks_from_) / period_ + (now.mono < ticks_from_ ? 0 : 1);
  const Instant next = ticks_from_ + ticks * period_;
  timer_ = client_.at(next, [this](Now then) {
    timer_.reset();
    tick(then);
    arm(then);
  });
}

void QueueBeat::retry(const std::string& zone, const Entry& entry, Now now) {
  monitor_.requeue(zone, entry, Duration::zero(), now);
  client_.at(now.mono + nanoseconds(1), [this](Now then) {
    tick(then);
    arm(then);
  });
}

void QueueBeat::tick(Now now) {
  monitor_.process_queues(
      now, [this, now](const std::string& zone, const Entry& entry) { return handle_(zone, entry, now); });
}

}  // namespace spillway::controllers
