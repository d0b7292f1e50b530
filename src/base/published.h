// A value that one thread replaces and all others read: a value that was read does not change as long as its reader
// keeps it. Thread: put() by one at a time, take() by any. Cost of take(): a lock that is held for the copy of a
// pointer.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace spillway {

template <typename T>
class Published {
 public:
  using Pointer = std::shared_ptr<const T>;

  explicit Published(Pointer first) : value_(std::move(first)) {}

  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  Pointer take() const {
    const std::lock_guard held(mutex_);
    return value_;
  }

  void put(Pointer next) {
    {
      const std::lock_guard held(mutex_);
      value_.swap(next);
    }
    // The old value may end here, without the lock.
  }

 private:
  mutable std::mutex mutex_;
  Pointer value_;
};

}  // namespace spillway
