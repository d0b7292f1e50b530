// The pod-resources API of a node (pod-resources/kubelet.sock, gRPC, v1 and v1alpha1), by which monitoring and networks
// of pods learn the devices, exclusive CPUs and NUMA memory of containers. Thread: loop; gRPC's threads hand each
// question to it. Bounds: the calls of Pace, which are upstream's, others are refused; messages to this server have
// kQuestionBytesMax. gRPC starts with the first client. Source: Kubernetes docs, "Device Plugins", monitoring device
// plugin resources.
#pragma once

#include "agent/contract/held_resources.h"
#include "base/error.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace spillway::host {

class PodResources {
 public:
  static constexpr int kQuestionBytesMax = 1 << 16;

  struct Pace {
    float calls_per_second = 100;
    int calls_at_once = 10;
  };

  /// Answers of the node; called on the loop.
  struct Source {
    std::function<std::vector<agent::PodParts>()> held;
    std::function<agent::HeldParts()> allocatable;
  };

  /// Makes the directory (0750) and listens. kInvalid: the path of the socket is longer than a socket's can be.
  static Result<std::unique_ptr<PodResources>> create(runtime::Loop& loop, const std::string& directory, Source source,
                                                      Pace pace, telemetry::Log log);
  /// Calls under way are refused.
  ~PodResources();
  PodResources(const PodResources&) = delete;
  PodResources& operator=(const PodResources&) = delete;

 private:
  struct Impl;
  explicit PodResources(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::host
