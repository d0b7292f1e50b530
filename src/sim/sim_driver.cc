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

Now SimDriver::own_time() const {
  Now now = time_.now();
  now.wall += std::chrono::duration_cast<microseconds>(clock_ahead_);
  return now;
}

void SimDriver::execute() {
  for (client::ApiCommand& command : engine_.take_api_commands()) {
    if (may_execute()) transport_.execute(std::move(command), *this);
  }
  if (after_step_ && !dead_) after_step_();
}

void SimDriver::end() {
  execute();
  while (!events_.empty() && !dead_) {
    std::move_only_function<void(Now)> event = std::move(events_.front());
    events_.pop_front();
    event(own_time());
    execute();
  }
  stepping_ = false;
  if (!dead_) arm();
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
