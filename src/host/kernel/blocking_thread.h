// A thread for system calls that may hang (statfs on a dead NFS mount) or take long (removing a big directory). One job
// at a time; what follows from it runs on the loop. Nothing on the kill path waits for it. Thread: loop; jobs run on
// the thread and may touch only what they own.
#pragma once

#include "base/alive.h"
#include "runtime/loop.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

namespace spillway::host {

class BlockingThread {
 public:
  /// Runs on the thread; the task that it returns runs on the loop.
  using Job = std::move_only_function<runtime::Loop::Task()>;

  BlockingThread(runtime::Loop& loop, std::size_t queue_max);
  /// Jobs that have not begun are dropped. A running job is waited for, at most a second, then abandoned: its thread
  /// ends by itself, its result is dropped.
  ~BlockingThread();
  BlockingThread(const BlockingThread&) = delete;
  BlockingThread& operator=(const BlockingThread&) = delete;

  /// False: the queue is full.
  [[nodiscard]] bool submit(Job job);

  bool busy() const { return busy_; }

 private:
  struct Shared;

  void hand_over(Job job);
  void on_done();

  runtime::Loop& loop_;
  std::size_t queue_max_;
  std::deque<Job> queue_;
  bool busy_ = false;
  std::shared_ptr<Shared> shared_;
  Alive alive_;
};

}  // namespace spillway::host
