// The current step of an operation that waits for answers and whose steps are functions of its class
// (docs/adr/0072-writes-as-lists-of-steps.md). Thread: loop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway {

/// The way in which a step leaves its operation. kStep: the next step of the list follows, or the one that go_to()
/// chose. kWait: an answer will come. kEnd: the operation has ended.
enum class Next : std::uint8_t { kStep, kWait, kEnd };

template <typename Step>
class StepList {
 public:
  /// `steps` must outlive the list.
  explicit StepList(std::span<const Step> steps) : steps_(steps) {}

  /// The step to run now. Precondition: the last one has not been taken.
  Step take() {
    current_ = steps_[upcoming_++];
    return current_;
  }

  /// `step` is taken next. Precondition: it is in the list.
  void go_to(Step step) { upcoming_ = static_cast<std::size_t>(std::ranges::find(steps_, step) - steps_.begin()); }

 private:
  std::span<const Step> steps_;
  std::size_t upcoming_ = 0;
  Step current_ = {};  // the step that runs or waits: for debuggers
};

}  // namespace spillway
