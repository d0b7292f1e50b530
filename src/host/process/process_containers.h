// The containers of pods of the process runtime: their start, from the command to the process, those taken over from an
// earlier process, and the report of their end. Thread: loop. Never waits. Source: agent/contract/ports.h,
// StartContainer; spec "Pod lifecycle", 5.
#pragma once

#include "agent/contract/ports.h"
#include "base/alive.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "host/kernel/blocking_thread.h"
#include "host/process/container_process.h"
#include "host/process/container_supervisors.h"
#include "host/process/pod_maker.h"
#include "host/process/process_options.h"
#include "host/process/process_pod_ends.h"
#include "host/process/process_pods.h"
#include "host/spawn/process_spawn.h"
#include "host/supervisor/supervisor.h"
#include "host/volumes/volume_thread.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

class ProcessContainers final : private ContainerProcess::Owner {
 public:
  /// Classes of the runtime that give a container what it has. All outlive this object.
  struct Means {
    VolumeThread& volumes;
    BlockingThread& files;
    const ContainerSupervisors& supervisors;
    PodMaker& maker;
    ProcessPodEnds& ends;
  };

  /// All outlive this object.
  ProcessContainers(const ProcessHost& host, ProcessPods& pods, Means means);
  ProcessContainers(const ProcessContainers&) = delete;
  ProcessContainers& operator=(const ProcessContainers&) = delete;
  ~ProcessContainers() override;

  /// Starts a container, or reports why it cannot start.
  void start(agent::StartContainer command);
  /// Takes over a container of an earlier process of this node.
  Outcome adopt(ProcessPod& pod, Supervisor supervisor, const agent::StartContainer& command);
  void stop(const agent::StopContainer& command);
  /// Removes the log of a container that has ended.
  void remove(const agent::RemoveContainer& command);
  /// Binds all that share processors to these, now and from now on.
  void share_cpus(const agent::ShareCpus& command);

 private:
  /// Sets what the command leaves open: environment, working directory, processors.
  void complete(const ProcessPod& pod, agent::StartContainer& command) const;

  /// A start whose mounts are being opened.
  struct MountedStart {
    PodIdentity pod;
    ContainerStarts::Claim claim;
    agent::StartContainer command;
  };

  void open_mounts(ProcessPod& pod, agent::StartContainer command);
  void on_mounts(MountedStart& start, Result<std::vector<OpenedMount>> opened);
  void launch(ProcessPod& pod, const agent::StartContainer& command, std::vector<OpenedMount> mounts);
  static Result<UniqueFd> target_pids(const ProcessPod& pod, const std::string& target);
  ContainerProcess::Start start_of(ProcessPod& pod, const agent::StartContainer& command) const;
  void refuse(const agent::StartContainer& command, std::string_view reason, std::string message);

  void on_started(agent::ContainerStarted event) override;
  void on_failed(agent::ContainerStartFailed event) override;
  void on_exited(agent::ContainerExited event) override;
  void dispose(UniqueFd mounts) override;
  void forget(const std::string& uid, const std::string& name);

  const ProcessHost& host_;
  ProcessPods& pods_;
  Means means_;
  std::string program_folder_;                                        // this program's; empty: unknown
  std::optional<std::uint64_t> open_files_max_ = raise_open_files();  // limit for started programs
  std::string shared_cpus_;                                           // empty: no policy of processors has set them
  Alive alive_;
};

}  // namespace spillway::host
