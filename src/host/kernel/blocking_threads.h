// Several threads for calls that take long, behind one queue: whichever is free takes the next job. Thread: loop, as of
// BlockingThread.
#pragma once

#include "base/alive.h"
#include "host/kernel/blocking_thread.h"
#include "runtime/loop.h"

#include <cstddef>
#include <deque>
#include <memory>

namespace spillway::host {

class BlockingThreads {
 public:
  /// `threads`: at least one.
  BlockingThreads(runtime::Loop& loop, std::size_t threads, std::size_t queue_max);
  BlockingThreads(const BlockingThreads&) = delete;
  BlockingThreads& operator=(const BlockingThreads&) = delete;

  /// False: all are busy and the queue is full.
  [[nodiscard]] bool submit(BlockingThread::Job job);

 private:
  [[nodiscard]] bool give(BlockingThread& thread, BlockingThread::Job job);
  void on_done(BlockingThread& thread);

  std::size_t queue_max_;
  std::deque<BlockingThread::Job> queue_;
  std::deque<BlockingThread> threads_;
  Alive alive_;
};

}  // namespace spillway::host
