// Things to do at an instant, inside an engine that has no clock: the earliest of them is its next wake-up.
// Actions due at the same instant run in the order they were set. Thread: loop.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace spillway::apiserver {

class TimerQueue {
 public:
  /// Instant and sequence number; ids are never reused.
  using Id = std::pair<Instant, std::uint64_t>;
  using Action = std::move_only_function<void()>;

  Id at(Instant due, Action action) {
    const Id id{due, ++last_};
    const bool earlier = actions_.empty() || due < actions_.begin()->first.first;
    actions_.emplace(id, std::move(action));
    if (earlier && on_earlier_) on_earlier_();
    return id;
  }

  /// Called whenever next() has moved to an earlier instant.
  void on_earlier(std::function<void()> call) { on_earlier_ = std::move(call); }

  void cancel(const Id& id) { actions_.erase(id); }

  std::optional<Instant> next() const {
    return actions_.empty() ? std::nullopt : std::optional<Instant>(actions_.begin()->first.first);
  }

  /// Runs what is due, not what these actions add for the same instant.
  void run_due(Instant now) {
    const std::uint64_t last = last_;
    for (auto at = actions_.begin(); at != actions_.end() && at->first.first <= now;) {
      if (at->first.second > last) {
        ++at;
        continue;
      }
      Action action = std::move(at->second);
      actions_.erase(at);
      action();
      at = actions_.begin();
    }
  }

 private:
  std::map<Id, Action> actions_;
  std::uint64_t last_ = 0;
  std::function<void()> on_earlier_;
};

}  // namespace spillway::apiserver
