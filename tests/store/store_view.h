// One server's view of a store that several share, which may not answer that server, or be full; and their clock.
// Thread: the test's.
#pragma once

#include "store/store.h"
#include "store/test_loop.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace spillway::store {

class StoreView final : public Store {
 public:
  explicit StoreView(Store& store, TestLoop& loop) : store_(store), loop_(loop) {}

  void write(Write write, Completion<WriteResult> done) override {
    if (silent) return unanswered_.push_back(std::move(done));
    if (fails || full) return refuse(std::move(done));
    store_.write(std::move(write), std::move(done));
  }

  void range(Range range, Completion<RangeResult> done) override {
    if (fails) return refuse(std::move(done));
    store_.range(std::move(range), std::move(done));
  }

  WatchId watch(std::string, Revision, Watcher&) override { return 0; }

  void unwatch(WatchId) override {}

  void compact(Revision, Completion<Revision>) override {}

  bool is_full() const override { return full; }

  Revision revision() const override { return store_.revision(); }

  Revision compacted() const override { return {}; }

  bool fails = false;
  bool full = false;
  bool silent = false;  // writes are not answered until answer_all()

  void answer_all(const Result<WriteResult>& result) {
    for (Completion<WriteResult>& done : std::exchange(unanswered_, {}))
      loop_.post([done = std::move(done), result]() mutable { done(result); });
    loop_.run_posted();
  }

 private:
  template <typename T>
  void refuse(Completion<T> done) {
    loop_.post([done = std::move(done)]() mutable { done(make_error(ErrorCode::kServiceUnavailable, "no answer")); });
  }

  Store& store_;
  TestLoop& loop_;
  std::vector<Completion<WriteResult>> unanswered_;
};

/// Runs timers of virtual time, and the tasks that they post.
class TestTimers {
 public:
  using Task = std::move_only_function<void()>;

  explicit TestTimers(TestLoop& loop) : loop_(loop) {}

  std::function<Instant()> clock() {
    return [this] { return now; };
  }

  std::function<void(Duration, Task)> after() {
    return [this](Duration time, Task task) { waiting.emplace(now + time, std::move(task)); };
  }

  void advance(Duration time) {
    const Instant end = now + time;
    while (!waiting.empty() && waiting.begin()->first <= end) {
      now = waiting.begin()->first;
      Task task = std::move(waiting.begin()->second);
      waiting.erase(waiting.begin());
      task();
      loop_.run_posted();
    }
    now = end;
  }

  Instant now{};
  std::multimap<Instant, Task> waiting;

 private:
  TestLoop& loop_;
};

}  // namespace spillway::store
