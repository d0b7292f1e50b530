#include "host/kernel/blocking_thread.h"

#include "base/check.h"

#include <signal.h>

#include <atomic>
#include <semaphore>
#include <thread>
#include <utility>

namespace spillway::host {
namespace {

enum class Gate : int { kOpen, kPosting, kAbandoned };

constexpr auto kJoinTimeout = std::chrono::seconds(1);

}  // namespace

/// The semaphore hands `job` and `after` over; the gate keeps a late thread from posting to a loop that is gone.
struct BlockingThread::Shared {
  explicit Shared(runtime::Loop& target) : loop(target) {}

  runtime::Loop& loop;
  std::binary_semaphore ready{0};
  std::binary_semaphore ended{0};
  std::atomic<bool> stop = false;
  std::atomic<Gate> gate = Gate::kOpen;
  Job job;
  std::move_only_function<runtime::Loop::Task(runtime::Loop::Task)> wrap;

  bool post(runtime::Loop::Task task) {
    Gate expected = Gate::kOpen;
    if (!gate.compare_exchange_strong(expected, Gate::kPosting)) return false;
    loop.post(std::move(task));
    gate.store(Gate::kOpen);
    return true;
  }

  void run() {
    for (;;) {
      ready.acquire();
      if (stop) break;
      Job current = std::exchange(job, {});
      if (!post(wrap(current()))) break;
    }
    ended.release();
  }
};

BlockingThread::BlockingThread(runtime::Loop& loop, std::size_t queue_max)
    : loop_(loop), queue_max_(queue_max), shared_(std::make_shared<Shared>(loop)) {
  shared_->wrap = [this, alive = alive_.ref()](runtime::Loop::Task after) -> runtime::Loop::Task {
    return [this, alive, after = std::move(after)]() mutable {
      if (alive.expired()) return;
      if (after) after();
      if (!alive.expired()) on_done();
    };
  };
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals belong to the loop's thread
  std::thread([shared = shared_] { shared->run(); }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

BlockingThread::~BlockingThread() {
  alive_.end();
  queue_.clear();
  shared_->stop = true;
  shared_->ready.release();
  if (shared_->ended.try_acquire_for(kJoinTimeout)) return;
  Gate expected = Gate::kOpen;
  while (!shared_->gate.compare_exchange_weak(expected, Gate::kAbandoned)) expected = Gate::kOpen;
}

bool BlockingThread::submit(Job job) {
  SPILLWAY_DCHECK(loop_.is_ours());
  if (busy_) {
    if (queue_.size() >= queue_max_) return false;
    queue_.push_back(std::move(job));
    return true;
  }
  hand_over(std::move(job));
  return true;
}

void BlockingThread::hand_over(Job job) {
  busy_ = true;
  shared_->job = std::move(job);
  shared_->ready.release();
}

void BlockingThread::on_done() {
  busy_ = false;
  if (queue_.empty()) return;
  Job next = std::move(queue_.front());
  queue_.pop_front();
  hand_over(std::move(next));
}

}  // namespace spillway::host
