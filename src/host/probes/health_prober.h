// Calls the health service of pods (grpc.health.v1, Check): a connection of its own for each call, unencrypted, ended
// by its time-out.
// Thread: loop; connections have a thread of their own from the first call on, and answers are delivered on the loop,
// never from inside ask(). Bounds: kUnderWayMax at a time, kAnswerMax bytes of an answer. Source: spec "Pod lifecycle",
// 9.5; gRPC, "GRPC Health Checking Protocol".
#pragma once

#include "agent/contract/ports.h"
#include "runtime/loop.h"

#include <cstddef>
#include <functional>
#include <memory>

namespace spillway::host {

class HealthProber {
 public:
  static constexpr std::size_t kUnderWayMax = 512;
  static constexpr int kAnswerMax = 16 * 1024;

  HealthProber(runtime::Loop& loop, std::function<void(agent::HostEvent)> emit);
  /// Questions under way are dropped, unanswered.
  ~HealthProber();
  HealthProber(const HealthProber&) = delete;
  HealthProber& operator=(const HealthProber&) = delete;

  void ask(const agent::AskGrpc& command);

 private:
  struct Impl;

  runtime::Loop& loop_;
  std::function<void(agent::HostEvent)> emit_;
  std::shared_ptr<Impl> impl_;  // null before the first probe
};

}  // namespace spillway::host
