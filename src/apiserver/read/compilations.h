// Compilations of stored objects that run in slices, and the writes that wait for them: a write of a policy is answered
// when the policy is in effect. One runs at a time, in the order of the changes, and the next begins in a later turn of
// the loop, so that a turn has the slice of one. Thread: loop. Bounds: one waiting compilation of each stored object,
// however often other servers change it; a waiting write has a seat (apiserver/flow).
#pragma once

#include "apiserver/resource/timer_queue.h"
#include "base/time.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace spillway::apiserver {

class Compilations {
 public:
  using Then = std::move_only_function<void()>;
  /// Compiles an object as it is when this is called, then calls `ended`, perhaps before it returns.
  using Start = std::move_only_function<void(Then ended)>;

  /// `now`: where the instant of the present event is kept.
  Compilations(TimerQueue& timers, const Now& now) : timers_(timers), now_(now) {}

  Compilations(const Compilations&) = delete;
  Compilations& operator=(const Compilations&) = delete;

  /// Adds a compilation, and starts it at once if none runs. `subject` names the object: a compilation of it that has
  /// not started will find its newest version, so another one is not added.
  void add(std::string subject, Start start) {
    if (!subjects_.insert(subject).second) return;
    waiting_.push_back({.number = ++last_, .subject = std::move(subject), .start = std::move(start)});
    start_next();
  }

  /// Calls `then` when every compilation that was added before has ended: at once if there is none.
  void when_done(Then then) {
    if (ended_ == last_) return then();
    writes_.emplace(last_, std::move(then));
  }

  /// Number of compilations that have not started.
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Job {
    std::uint64_t number;
    std::string subject;
    Start start;
  };

  void start_next() {
    if (is_busy_ || waiting_.empty()) return;
    is_busy_ = true;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    subjects_.erase(job.subject);
    job.start([this, number = job.number] { end(number); });
  }

  void end(std::uint64_t number) {
    ended_ = number;
    timers_.at(now_.mono, [this] {
      is_busy_ = false;
      start_next();
    });
    while (!writes_.empty() && writes_.begin()->first <= ended_) writes_.extract(writes_.begin()).mapped()();
  }

  TimerQueue& timers_;
  const Now& now_;
  std::uint64_t last_ = 0;
  std::uint64_t ended_ = 0;
  bool is_busy_ = false;  // one runs, or has ended in this turn
  std::deque<Job> waiting_;
  std::set<std::string, std::less<>> subjects_;  // objects whose compilation waits
  std::multimap<std::uint64_t, Then> writes_;    // by the number of the last compilation that each waits for
};

}  // namespace spillway::apiserver
