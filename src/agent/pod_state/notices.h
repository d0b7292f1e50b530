// Notifications that are delivered after a change is complete. A listener may start the next change, which would
// otherwise interfere with the first. Thread: loop (plain values).
#pragma once

#include <deque>
#include <functional>
#include <utility>

namespace spillway::agent {

class Notices {
 public:
  /// Delays all notices while at least one Hold exists. Afterwards they are sent, in order.
  class Hold {
   public:
    explicit Hold(Notices& notices) : notices_(notices) { ++notices_.holds_; }

    ~Hold() {
      --notices_.holds_;
      notices_.deliver();
    }

    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Notices& notices_;
  };

  /// Sends the notice at once unless held; one that is added while another is sent follows it.
  void add(std::function<void()> notice) {
    waiting_.push_back(std::move(notice));
    deliver();
  }

 private:
  void deliver() {
    if (holds_ > 0 || delivering_) return;
    delivering_ = true;
    while (!waiting_.empty()) {
      const std::function<void()> next = std::move(waiting_.front());
      waiting_.pop_front();
      next();
    }
    delivering_ = false;
  }

  std::deque<std::function<void()>> waiting_;
  int holds_ = 0;
  bool delivering_ = false;
};

}  // namespace spillway::agent
