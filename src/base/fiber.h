// A computation on a stack of its own, which yields the thread after each slice of work: for a long pure computation
// beside which other work has to be served, without a second thread and its locks. It counts its work by count_work();
// a slice is bounded by that and not by time, so equal computations have equal slices.
// Thread: one (a fiber is resumed by the thread that made it). Source: makecontext(3), swapcontext(3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace spillway {

class Fiber {
 public:
  using Work = std::move_only_function<void()>;

  /// Address space of a stack. Memory is taken as the computation touches it.
  static constexpr std::size_t kStackBytes = 8U << 20U;

  /// `work` begins with the first resume(). It must not throw.
  explicit Fiber(Work work);
  /// A computation that has begun is run to its end, whatever that costs: what it holds is released there.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the computation until it has counted `units` of work (at least 1) or has ended. True: it has ended.
  /// Precondition: it has not ended before, and does not run.
  bool resume(std::uint64_t units);

 private:
  struct Context;

  friend void count_work(std::uint64_t units);

  std::unique_ptr<Context> context_;
};

/// Counts work of the computation that calls it. In a fiber whose slice is used up by it, it returns when the next
/// slice begins; outside of fibers it does nothing.
void count_work(std::uint64_t units);

}  // namespace spillway
