// Makes pods whose containers a container runtime runs: directories, volumes and cgroup; completes pods of earlier
// processes with their definition. Thread: loop. Never waits. Source: agent/contract/ports.h, CreatePod.
#pragma once

#include "agent/contract/ports.h"
#include "base/error.h"
#include "host/containers/cri_options.h"
#include "host/containers/cri_pod_cgroups.h"
#include "host/containers/cri_pods.h"
#include "host/containers/cri_sandboxes.h"
#include "host/containers/log_folders.h"

namespace spillway::host {

class CriPodMaker {
 public:
  /// All outlive this object.
  CriPodMaker(const CriHost& host, CriPods& pods, CriPodCgroups& cgroups, const CriSandboxes& sandboxes,
              const LogFolders& log_folders)
      : host_(host), pods_(pods), cgroups_(cgroups), sandboxes_(sandboxes), log_folders_(log_folders) {}

  CriPodMaker(const CriPodMaker&) = delete;
  CriPodMaker& operator=(const CriPodMaker&) = delete;
  ~CriPodMaker() = default;

  /// Adds a pod to the table. A pod that cannot be made is there all the same, with its error.
  void create(agent::CreatePod command);

 private:
  Outcome make(CriPod& pod);
  void complete(CriPod& pod, agent::CreatePod command);

  const CriHost& host_;
  CriPods& pods_;
  CriPodCgroups& cgroups_;
  const CriSandboxes& sandboxes_;
  const LogFolders& log_folders_;
};

}  // namespace spillway::host
