#include "host/kernel/blocking_threads.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace spillway::host {

BlockingThreads::BlockingThreads(runtime::Loop& loop, std::size_t threads, std::size_t queue_max)
    : queue_max_(queue_max) {
  for (std::size_t i = 0; i < std::max<std::size_t>(threads, 1); ++i) threads_.emplace_back(loop, 1);
}

bool BlockingThreads::submit(BlockingThread::Job job) {
  const auto idle = std::ranges::find_if(threads_, [](const BlockingThread& each) { return !each.busy(); });
  if (idle != threads_.end()) return give(*idle, std::move(job));
  if (queue_.size() >= queue_max_) return false;
  queue_.push_back(std::move(job));
  return true;
}

bool BlockingThreads::give(BlockingThread& thread, BlockingThread::Job job) {
  return thread.submit([this, &thread, alive = alive_.ref(), job = std::move(job)]() mutable {
    return runtime::Loop::Task([this, &thread, alive, after = job()]() mutable {
      if (after) after();
      if (!alive.expired()) on_done(thread);
    });
  });
}

/// The thread may still be ending its job; its own queue has room for the next one.
void BlockingThreads::on_done(BlockingThread& thread) {
  if (queue_.empty()) return;
  BlockingThread::Job next = std::move(queue_.front());
  queue_.pop_front();
  SPILLWAY_CHECK(give(thread, std::move(next)));
}

}  // namespace spillway::host
