// A loop for tests: runs what was posted, in order, on the thread that asks it to.
// Thread: post() any; the rest the test's.
#pragma once

#include "store/store.h"
#include "support/patience.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

namespace spillway::store {

class TestLoop {
 public:
  using Task = std::move_only_function<void()>;

  Poster poster() {
    return [this](Task task) { post(std::move(task)); };
  }

  void post(Task task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  }

  /// Asked by run_until() when nothing is posted: true if that has led on, as where time is virtual.
  void when_idle(std::function<bool()> idle) { idle_ = std::move(idle); }

  /// Runs tasks until `done()`; false if nothing is posted for that long, or once nothing leads on.
  bool run_until(const std::function<bool()>& done) {
    while (!done()) {
      if (idle_ && waiting() == 0) {
        if (!idle_()) return false;
        continue;
      }
      std::optional<Task> task = take(support::kPatience);
      if (!task) return false;
      (*task)();
    }
    return true;
  }

  /// Runs posted tasks, and the tasks that these post.
  void run_posted() {
    while (std::optional<Task> task = take(std::chrono::seconds(0))) (*task)();
  }

  std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return tasks_.size();
  }

 private:
  std::optional<Task> take(std::chrono::seconds patience) {
    std::unique_lock lock(mutex_);
    if (!wake_.wait_for(lock, patience, [this] { return !tasks_.empty(); })) return std::nullopt;
    std::optional<Task> task(std::move(tasks_.front()));
    tasks_.pop_front();
    return task;
  }

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  std::function<bool()> idle_;
};

}  // namespace spillway::store
