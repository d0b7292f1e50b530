#include "runtime/engine_driver.h"

#include "base/check.h"
#include "runtime/slow_turns.h"

#include <utility>

namespace spillway::runtime {

EngineDriver::EngineDriver(Loop& loop, client::ApiEngine& engine, client::Transport& transport)
    : loop_(loop), engine_(engine), transport_(transport), mark_(std::string(kStepMark).append(engine.name())) {}

EngineDriver::~EngineDriver() {
  stop();
}

void EngineDriver::start() {
  step([this](Now now) { engine_.start(now); });
}

void EngineDriver::stop() {
  if (std::exchange(stopped_, true)) return;
  events_.clear();
  if (timer_) loop_.cancel(timer_->id);
  timer_.reset();
  transport_.disconnect(*this);
}

void EngineDriver::on_api_event(client::ApiEvent event) {
  // std::function wants a copyable callable; an answer is moved, not copied, into the step.
  auto shared = std::make_shared<client::ApiEvent>(std::move(event));
  step([this, shared = std::move(shared)](Now now) { engine_.on_api_event(*shared, now); });
}

void EngineDriver::step(std::function<void(Now)> event) {
  if (stopped_) return;
  events_.push_back(std::move(event));
  if (!stepping_) drain();
}

void EngineDriver::drain() {
  stepping_ = true;
  while (!events_.empty()) {
    const std::function<void(Now)> event = std::move(events_.front());
    events_.pop_front();
    loop_.mark(mark_);
    event(loop_.now());
    for (client::ApiCommand& command : engine_.take_api_commands()) transport_.execute(std::move(command), *this);
    if (after_step_ && !stopped_) after_step_();
    if (stopped_) break;  // by a command of the engine's owner
  }
  stepping_ = false;
  if (!stopped_) arm_timer();
}

void EngineDriver::arm_timer() {
  const std::optional<Instant> due = engine_.next_wakeup();
  if (timer_ && due && timer_->due == *due) return;
  if (timer_) loop_.cancel(timer_->id);
  timer_.reset();
  if (!due) return;
  const Loop::TimerId id = loop_.at(*due, [this] {
    timer_.reset();
    step([this](Now now) { engine_.on_wakeup(now); });
  });
  timer_ = Timer{id, *due};
}

}  // namespace spillway::runtime
