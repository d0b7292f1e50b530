#include "sim/sim_driver.h"

#include <utility>

namespace spillway::sim {

SimDriver::SimDriver(VirtualTime& time, client::ApiEngine& engine, client::Transport& transport)
    : time_(time), engine_(engine), transport_(transport) {}

SimDriver::~SimDriver() {
  transport_.disconnect(*this);
  if (wakeup_) time_.cancel(*wakeup_);
}

void SimDriver::start() {
  step([this](Now now) { engine_.start(now); });
}

void SimDriver::on_api_event(client::ApiEvent event) {
  step([this, event = std::move(event)](Now now) { engine_.on_api_event(event, now); });
}

void SimDriver::step(std::function<void(Now)> event) {
  events_.push_back(std::move(event));
  if (!stepping_) drain();
}

void SimDriver::drain() {
  stepping_ = true;
  while (!events_.empty() && !dead_) {
    const std::function<void(Now)> event = std::move(events_.front());
    events_.pop_front();
    Now now = time_.now();
    now.wall += std::chrono::duration_cast<microseconds>(clock_ahead_);
    event(now);
    for (client::ApiCommand& command : engine_.take_api_commands()) {
      if (may_execute()) transport_.execute(std::move(command), *this);
    }
    if (after_step_ && !dead_) after_step_();
  }
  stepping_ = false;
  if (dead_) return;
  arm();
}

void SimDriver::arm() {
  const std::optional<Instant> next = engine_.next_wakeup();
  if (wakeup_ && next && wakeup_->due == *next) return;
  if (wakeup_) time_.cancel(*wakeup_);
  wakeup_.reset();
  if (!next) return;
  wakeup_ = time_.at(*next, [this] {
    wakeup_.reset();
    step([this](Now now) { engine_.on_wakeup(now); });
  });
}

}  // namespace spillway::sim
