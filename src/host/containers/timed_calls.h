// Calls of a node to its container runtime, whose longest duration the node configures (runtimeRequestTimeout).
// Thread: loop. No answer is delivered after the end of this object, which therefore outlives those who call by it.
#pragma once

#include "base/alive.h"
#include "base/time.h"
#include "host/cri/cri_calls.h"

#include <string_view>
#include <utility>

namespace spillway::host {

class TimedCalls final : public RuntimeCalls {
 public:
  /// `calls` must outlive this object. `longest`: replaces kRuntimeCallMax.
  TimedCalls(RuntimeCalls& calls, Duration longest) : calls_(calls), longest_(longest) {}

  void call(std::string_view method, api::Json request, Duration deadline, Answer answer) override {
    calls_.call(
        method, std::move(request), deadline == kRuntimeCallMax ? longest_ : deadline,
        alive_.guard([answer = std::move(answer)](Result<api::Json> result) mutable { answer(std::move(result)); }));
  }

 private:
  RuntimeCalls& calls_;
  Duration longest_;
  Alive alive_;
};

}  // namespace spillway::host
