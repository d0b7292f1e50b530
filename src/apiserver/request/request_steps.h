// Steps of a request that other programs carry out: webhook calls, store writes, calls of agents, with their times;
// they become the spans of a traced request. Thread: loop. Bounds: kStepsMax of a request.
#pragma once

#include "base/time.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apiserver {

struct RequestStep {
  enum class Of : std::uint8_t { kWebhook, kStore, kAgent, kPod };

  Of of = Of::kStore;
  std::string whom;  // the called webhook, node or server in a pod, or the resource that is written
  Instant begun{};
  std::optional<Instant> ended;  // nullopt: not before the request
  bool failed = false;           // the other program did not answer, or the store did not write
};

class RequestSteps {
 public:
  static constexpr std::size_t kStepsMax = 16;

  /// Starts recording; before this call no step is kept.
  void keep() { kept_ = std::make_unique<std::vector<RequestStep>>(); }

  bool are_kept() const { return kept_ != nullptr; }

  /// nullopt: not kept, or too many.
  std::optional<std::size_t> begin(RequestStep::Of of, std::string whom, Instant now) {
    if (kept_ == nullptr) return std::nullopt;
    if (kept_->size() == kStepsMax) {
      ++left_out_;
      return std::nullopt;
    }
    kept_->push_back({.of = of, .whom = std::move(whom), .begun = now, .ended = std::nullopt});
    return kept_->size() - 1;
  }

  void end(std::optional<std::size_t> step, Instant now, bool failed) {
    if (!step || (*kept_)[*step].ended) return;
    (*kept_)[*step].ended = now;
    (*kept_)[*step].failed = failed;
  }

  const std::vector<RequestStep>& all() const {
    static const std::vector<RequestStep> kNone;
    return kept_ == nullptr ? kNone : *kept_;
  }

  std::size_t left_out() const { return left_out_; }

 private:
  std::unique_ptr<std::vector<RequestStep>> kept_;
  std::size_t left_out_ = 0;
};

}  // namespace spillway::apiserver
