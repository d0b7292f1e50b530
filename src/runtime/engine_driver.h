// Drives one engine in the real world: delivers events, executes the commands it left as a batch, arms one timer for
// its next wake-up. Steps are never nested: an event that arrives during a step waits for the next one. Thread: loop.
#pragma once

#include "client/engine.h"
#include "runtime/loop.h"

#include <deque>
#include <functional>
#include <optional>
#include <string>

namespace spillway::runtime {

class EngineDriver final : public client::Transport::Receiver {
 public:
  EngineDriver(Loop& loop, client::ApiEngine& engine, client::Transport& transport);
  ~EngineDriver() override;
  EngineDriver(const EngineDriver&) = delete;
  EngineDriver& operator=(const EngineDriver&) = delete;

  void start();
  /// Stops the engine: no event is delivered afterwards.
  void stop();

  void on_api_event(client::ApiEvent event) override;
  /// Runs `event` as one step of the engine (used for host events of an agent), then executes its commands.
  void step(std::function<void(Now)> event);

  /// Called after every step, to execute commands beyond those of ApiEngine.
  void after_step(std::function<void()> execute) { after_step_ = std::move(execute); }

 private:
  struct Timer {
    Loop::TimerId id = 0;
    Instant due;
  };

  void drain();
  void arm_timer();

  Loop& loop_;
  client::ApiEngine& engine_;
  client::Transport& transport_;
  std::string mark_;  // the cause of a turn that took long because of this engine
  std::deque<std::function<void(Now)>> events_;
  std::function<void()> after_step_;
  std::optional<Timer> timer_;
  bool stepping_ = false;
  bool stopped_ = false;
};

}  // namespace spillway::runtime
