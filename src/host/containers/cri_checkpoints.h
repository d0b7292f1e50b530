// Checkpoints of containers of a container runtime: the state of their processes as an archive that the runtime writes.
// Thread: loop. Bounds: kTakenMax at once, a deadline on every call. Source: Kubernetes docs, "Kubelet Checkpoint API";
// KEP-2008.
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "base/time.h"
#include "host/cri/cri_calls.h"
#include "host/pods/pod_runtime.h"

#include <cstddef>
#include <string>

namespace spillway::host {

class CriCheckpoints {
 public:
  static constexpr std::size_t kTakenMax = 4;

  /// `calls` outlives this object, and delivers no answer after its end. `longest`: of calls that nothing else bounds.
  CriCheckpoints(RuntimeCalls& calls, Duration longest) : calls_(calls), longest_(longest) {}

  CriCheckpoints(const CriCheckpoints&) = delete;
  CriCheckpoints& operator=(const CriCheckpoints&) = delete;
  ~CriCheckpoints() = default;

  /// `container_id`: of a container that runs. Errors are the runtime's, as gRPC prints them, or upstream's.
  void take(const std::string& container_id, const CheckpointWish& wish, CheckpointTaken answer);

 private:
  void on_taken(const Result<api::Json>& taken, CheckpointTaken& answer);

  RuntimeCalls& calls_;
  Duration longest_;
  std::size_t under_way_ = 0;
};

}  // namespace spillway::host
