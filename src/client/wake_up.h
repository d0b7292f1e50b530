// The one timer by which an engine is woken when the next of the things it keeps in order is due. Thread: loop.
#pragma once

#include "base/time.h"
#include "client/api_client.h"

#include <functional>
#include <optional>
#include <utility>

namespace spillway::client {

class WakeUp {
 public:
  /// Moves the timer; nullopt: nothing is due. `act` runs when it is; without one the step of the engine that a timer
  /// causes is all that is wanted. The engine outlives its client's timers.
  void set(ApiClient& client, std::optional<Instant> due, std::function<void(Now)> act = {}) {
    if (timer_ && (!due || timer_->first != *due)) {
      client.cancel(timer_->second);
      timer_.reset();
    }
    if (!due || timer_) return;
    timer_.emplace(*due, client.at(*due, [this, act = std::move(act)](Now now) {
      timer_.reset();
      if (act) act(now);
    }));
  }

 private:
  std::optional<std::pair<Instant, ApiClient::TimerId>> timer_;
};

}  // namespace spillway::client
