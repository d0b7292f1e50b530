// Compilations of stored objects that run in slices, and the writes that wait for them: a write of a policy is answered
// when the policy is in effect. Thread: loop. Bound: a waiting write has a seat (apiserver/flow).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace spillway::apiserver {

class Compilations {
 public:
  using Then = std::move_only_function<void()>;

  /// Adds a compilation, and returns its number for end().
  std::uint64_t begin() {
    running_.insert(++last_);
    return last_;
  }

  void end(std::uint64_t number) {
    running_.erase(number);
    while (!waiting_.empty() && (running_.empty() || waiting_.begin()->first < *running_.begin())) {
      waiting_.extract(waiting_.begin()).mapped()();
    }
  }

  /// Calls `then` when every compilation that has begun before has ended: at once if none runs.
  void when_done(Then then) {
    if (running_.empty()) return then();
    waiting_.emplace(last_, std::move(then));
  }

 private:
  std::uint64_t last_ = 0;
  std::set<std::uint64_t> running_;
  std::multimap<std::uint64_t, Then> waiting_;  // by the number of the last compilation that each waits for
};

}  // namespace spillway::apiserver
