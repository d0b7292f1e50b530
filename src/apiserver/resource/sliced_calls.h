// Computations that clients can make long (rules and policies in the Common Expression Language), each in a fiber: the
// first slice runs at once, the others between requests. Thread: loop. Bound: a computation belongs to a request that
// has a seat (apiserver/flow), compiles a stored policy or webhook, one at a time (read/compilations.h), or reads an
// OpenAPI document of another server, two at a time (aggregation/remote_open_api.h).
#pragma once

#include "apiserver/resource/slice_queue.h"
#include "base/fiber.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>

namespace spillway::apiserver {

/// Work of one slice: steps of evaluations as cel::Budget counts them, of about 50 ns each. Some 2 ms.
inline constexpr std::uint64_t kSliceUnits = 40'000;

class SlicedCalls {
 public:
  using Then = std::move_only_function<void()>;

  explicit SlicedCalls(SliceQueue& queue) : queue_(queue) {}

  /// Runs computations that have begun to their end, and calls none of their `then`.
  ~SlicedCalls() = default;
  SlicedCalls(const SlicedCalls&) = delete;
  SlicedCalls& operator=(const SlicedCalls&) = delete;

  /// Runs `work`, then calls `then`: before this returns if the work ends in its first slice. Objects that `work` uses
  /// must stay valid until `then` is called; other requests are served between its slices.
  void run(Fiber::Work work, Then then) {
    auto call = std::make_shared<Call>(std::move(work), std::move(then));
    if (call->fiber.resume(kSliceUnits)) return call->then();
    calls_.insert(call);
    queue_.add([this, weak = std::weak_ptr(call)](SliceBudget&) { return resume(weak.lock()); });
  }

 private:
  struct Call {
    Call(Fiber::Work work, Then after) : then(std::move(after)), fiber(std::move(work)) {}

    Then then;  // owns what the work uses, so the fiber is destroyed first
    Fiber fiber;
  };

  /// True: the call has ended.
  bool resume(const std::shared_ptr<Call>& call) {
    if (call == nullptr) return true;
    if (!call->fiber.resume(kSliceUnits)) return false;
    calls_.erase(call);
    call->then();
    return true;
  }

  SliceQueue& queue_;
  std::set<std::shared_ptr<Call>> calls_;  // calls whose next slice is due
};

}  // namespace spillway::apiserver
