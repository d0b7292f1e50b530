// Takes over the pods of an earlier process of this node, from their records, supervisors and cgroups, and reports them
// as one PodsFound; or removes what is left of them. Thread: loop. Waits only at the start of the node.
// Source: docs/adr/0012-warm-restart.md, docs/adr/0013-supervised-pods.md.
#pragma once

#include "agent/contract/ports.h"
#include "base/alive.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "host/process/container_supervisors.h"
#include "host/process/pod_attachments.h"
#include "host/process/pod_maker.h"
#include "host/process/process_containers.h"
#include "host/process/process_options.h"
#include "host/process/process_pods.h"
#include "host/supervisor/supervisor.h"
#include "host/volumes/volume_thread.h"

#include <string>
#include <vector>

namespace spillway::host {

class ProcessTakeover {
 public:
  /// Classes of the runtime to which parts of the pods belong afterwards. All outlive this object.
  struct Means {
    VolumeThread& volumes;
    ContainerSupervisors& supervisors;
    PodAttachments& attachments;
    PodMaker& maker;
    ProcessContainers& containers;
  };

  /// All outlive this object.
  ProcessTakeover(const ProcessHost& host, ProcessPods& pods, Means means) : host_(host), pods_(pods), means_(means) {}

  ProcessTakeover(const ProcessTakeover&) = delete;
  ProcessTakeover& operator=(const ProcessTakeover&) = delete;
  ~ProcessTakeover() = default;

  /// Fills the empty table of pods and emits PodsFound later. Called once, when the supervisors are open.
  Outcome begin();
  /// Replaces begin(), where pods end with their process: removes their directories and attachments.
  Outcome remove_all();

 private:
  std::vector<std::string> pod_directories() const;
  void read_pod(const std::string& directory);
  /// Returns the mount namespace of the node's volumes, if one of the supervisors holds it.
  UniqueFd find_supervisors();
  void take_supervisor(Supervisor supervisor);
  static void take_namespaces(ProcessPod& pod, const Supervisor& supervisor);
  void clear_cgroups();
  static void clear_cgroups(const ProcessPod& pod);
  void on_mounts(const Result<std::vector<std::string>>& mounts);
  void report(const std::vector<std::string>& mounts);
  /// Mount points below the directories of pods, by the paths that the runtime uses.
  std::vector<std::string> mounts_of_pods(const std::vector<std::string>& mounts) const;
  void adopt_containers(ProcessPod& pod, agent::FoundPod& found);

  const ProcessHost& host_;
  ProcessPods& pods_;
  Means means_;
  Alive alive_;
};

}  // namespace spillway::host
