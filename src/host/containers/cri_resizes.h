// Resizes of pods whose containers a container runtime runs: each is a CriResize on the pod as it is then, and changes
// the table of pods when it is done. Thread: loop. Source: agent/contract/ports.h, ResizePod; KEP-1287.
#pragma once

#include "agent/contract/ports.h"
#include "base/error.h"
#include "host/containers/cri_options.h"
#include "host/containers/cri_pod_cgroups.h"
#include "host/containers/cri_pods.h"
#include "host/containers/cri_resize.h"

#include <optional>
#include <string>

namespace spillway::host {

class CriResizes {
 public:
  /// All outlive this object.
  CriResizes(const CriHost& host, CriPods& pods, CriPodCgroups& cgroups)
      : host_(host), pods_(pods), cgroups_(cgroups) {}

  CriResizes(const CriResizes&) = delete;
  CriResizes& operator=(const CriResizes&) = delete;
  ~CriResizes() = default;

  void start(agent::ResizePod command);

 private:
  std::optional<ResizedPod> resized_pod(const std::string& uid) const;
  void on_resized(const agent::ResizePod& command, const Outcome& outcome);

  const CriHost& host_;
  CriPods& pods_;
  CriPodCgroups& cgroups_;
};

}  // namespace spillway::host
