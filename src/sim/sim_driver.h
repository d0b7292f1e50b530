// Drives one engine on virtual time: the twin of runtime::EngineDriver.
// Thread: one. Steps are never nested.
#pragma once

#include "client/engine.h"
#include "sim/time/virtual_time.h"

#include <deque>
#include <functional>
#include <optional>
#include <utility>

namespace spillway::sim {

class SimDriver final : public client::Transport::Receiver {
 public:
  SimDriver(VirtualTime& time, client::ApiEngine& engine, client::Transport& transport);
  ~SimDriver() override;
  SimDriver(const SimDriver&) = delete;
  SimDriver& operator=(const SimDriver&) = delete;

  void start();
  void on_api_event(client::ApiEvent event) override;

  /// Runs `event` as one step of the engine (for host events of an agent).
  template <typename Event>
  void step(Event&& event) {
    if (dead_) return;
    if (stepping_) {
      events_.emplace_back(std::forward<Event>(event));
    } else {
      begin();
      event(own_time());
      end();
    }
  }

  /// `lives` is called before every command: false ends the process there. Its remaining commands are lost, and it gets
  /// no event any more; the caller has to destroy it.
  void before_command(std::function<bool()> lives) { lives_ = std::move(lives); }

  /// Asks before each command of after_step() if it may be executed.
  bool may_execute() {
    if (!dead_ && lives_ && !lives_()) dead_ = true;
    return !dead_;
  }

  /// Sets the wall clock of the process ahead of all others.
  void set_clock(Duration ahead) { clock_ahead_ = ahead; }

  /// Called after every step, to execute commands beyond those of ApiEngine.
  void after_step(std::function<void()> execute) { after_step_ = std::move(execute); }

 private:
  /// The time by the process's own wall clock.
  Now own_time() const;

  void begin() { stepping_ = true; }

  /// Executes the commands of the step, then events that arrived meanwhile.
  void end();
  void execute();
  void arm();

  VirtualTime& time_;
  client::ApiEngine& engine_;
  client::Transport& transport_;
  std::deque<std::move_only_function<void(Now)>> events_;  // events that arrived during a step
  std::function<void()> after_step_;
  std::function<bool()> lives_;
  bool dead_ = false;
  std::optional<VirtualTime::EventId> wakeup_;
  Duration clock_ahead_{};
  bool stepping_ = false;
};

}  // namespace spillway::sim
