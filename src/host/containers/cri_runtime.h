// Runs pods in a container runtime (containerd, CRI-O) over CRI v1. The pods' cgroups are made here, as a kubelet's
// cgroupfs driver does, and containers are in them: a container that has to die at once is killed through its cgroup,
// whatever the runtime does. An ended container is noticed by its process, and by lists of the runtime every second.
// Thread: loop. Never waits; events are emitted later, never from inside execute(). Bounds: Options::pods_max pods, a
// deadline on every call; Options::parallel_pulls pulls. Files are kept under <state>/pods/<namespace>_<name>_<uid>/:
// _volumes, _files, _ends; logs under <pod_logs_dir>/<namespace>_<name>_<uid>/<container>/<attempt>.log. The commands
// are carried out by classes of their own, on one table of pods (CriPods); operations that wait are lists of steps:
//   CriPodMaker         makes pods; CriPodCgroups their cgroups and limits; CriResizes changes them
//   CriSandboxes        makes sandboxes (CriSandboxStart), finds lost ones
//   CriContainerStart   starts a container; CriImagePulls its image (CriImagePull)
//   CriContainerEnds    finds ends of containers, stops containers
//   CriPodEnds          ends pods, removes them (CriPodRemoval)
//   CriListing          lists the runtime's containers; CriTakeover adopts those of an earlier process
//   CriStorage          measures disks; CriReclaim frees space (CriReclaimRequest); CriRemains removes what is left
//   CriCommands         runs programs in containers; CriStreams lets clients in; CriLogRotation rotates logs
//   CriCheckpoints      lets the runtime write the state of containers
// Source: agent/contract/ports.h; spec "Pod lifecycle", 2, 5, 6, 8, 12, 13; docs/adr/0011-container-runtime.md.
#pragma once

#include "agent/contract/ports.h"
#include "agent/cri/lifecycle_events.h"
#include "base/error.h"
#include "host/cgroup/node_slice.h"
#include "host/containers/cri_checkpoints.h"
#include "host/containers/cri_commands.h"
#include "host/containers/cri_container_ends.h"
#include "host/containers/cri_container_start.h"
#include "host/containers/cri_image_pulls.h"
#include "host/containers/cri_listing.h"
#include "host/containers/cri_log_rotation.h"
#include "host/containers/cri_options.h"
#include "host/containers/cri_owner.h"
#include "host/containers/cri_pod_cgroups.h"
#include "host/containers/cri_pod_ends.h"
#include "host/containers/cri_pod_maker.h"
#include "host/containers/cri_pods.h"
#include "host/containers/cri_reclaim.h"
#include "host/containers/cri_remains.h"
#include "host/containers/cri_resizes.h"
#include "host/containers/cri_sandboxes.h"
#include "host/containers/cri_status_feed.h"
#include "host/containers/cri_storage.h"
#include "host/containers/cri_streams.h"
#include "host/containers/cri_takeover.h"
#include "host/containers/image_collector.h"
#include "host/containers/log_folders.h"
#include "host/containers/timed_calls.h"
#include "host/cri/cri_calls.h"
#include "host/files/checkpoint_files.h"
#include "host/kernel/blocking_thread.h"
#include "host/observation/observer.h"
#include "host/observation/page_cache_relief.h"
#include "host/pods/pod_limits.h"
#include "host/pods/pod_runtime.h"
#include "host/pods/start_files.h"
#include "host/pods/volume_commands.h"
#include "host/probes/health_prober.h"
#include "host/probes/network_prober.h"
#include "host/reaction/host_events.h"
#include "host/volumes/volume_thread.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {

class CriRuntime final : public PodRuntime {
 public:
  /// Makes the directories. Containers of earlier processes of this node are reported by PodsFound, once the runtime
  /// answers; before that no command about a pod is allowed.
  static Result<std::unique_ptr<CriRuntime>> create(runtime::Loop& loop, const NodeSlice& slice,
                                                    std::unique_ptr<RuntimeCalls> calls,
                                                    agent::Host::Receiver& receiver, telemetry::Log log,
                                                    CriRuntimeOptions options);
  ~CriRuntime() override;
  CriRuntime(const CriRuntime&) = delete;
  CriRuntime& operator=(const CriRuntime&) = delete;

  void execute(agent::HostCommand command) override;

  void shutdown(Duration grace, std::function<void()> done) override { pod_ends_.shut_down(grace, std::move(done)); }

  bool keep_pods() override;

  Result<std::string> find_log(const api::PodKey& pod, const std::string& container,
                               std::int32_t attempt) const override {
    return pods_.find_log(pod, container, attempt);
  }

  bool is_log_live(const std::string& path) const override { return pods_.is_log_live(path); }

  std::optional<std::int32_t> attempt_of(const std::string& container_id) const override {
    return pods_.attempt_of(container_id);
  }

  Result<api::Summary> observe_now() override { return storage_.observe_now(); }

  std::shared_ptr<const ReactionTarget> find_target(const std::string& uid) override { return pods_.find_target(uid); }

  Result<ContainerAccess> enter(const api::PodKey& pod, const std::string& uid, const std::string& container,
                                std::vector<std::string> argv) override;
  Result<std::shared_ptr<ContainerConsole>> console(const api::PodKey& pod, const std::string& uid,
                                                    const std::string& container) const override;
  Result<PortSession::Dial> dial(const api::PodKey& pod, const std::string& uid) override;

  StreamServer* stream_server() override { return &streams_; }

  void listen(std::function<void()> before_event, std::function<void()> targets_changed) override {
    events_.listen(std::move(before_event), std::move(targets_changed));
  }

  std::vector<agent::RunningPod> running_pods() const override { return pods_.running(); }

  void checkpoint(const CheckpointWish& wish, CheckpointTaken answer) override;

  void set_device_files(StartFiles::WhenSaved when_saved) override { start_files_.set_devices(std::move(when_saved)); }

  std::vector<api::PodKey> pods() const override { return pods_.keys(); }

 private:
  CriRuntime(runtime::Loop& loop, const NodeSlice& slice, std::unique_ptr<RuntimeCalls> calls,
             agent::Host::Receiver& receiver, telemetry::Log log, CriRuntimeOptions options);

  void on_command(agent::CreatePod command) { maker_.create(std::move(command)); }

  void on_command(const agent::RunSandbox& command) { sandboxes_.start(command); }

  void on_command(agent::StartContainer command) {
    const auto start = std::make_shared<CriContainerStart>(start_means_, std::move(command));
    start_files_.when_saved(start->command(), [start] { start->advance(); });
  }

  void on_command(const agent::StopContainer& command) { container_ends_.stop(command); }

  void on_command(const agent::StopPod& command) { pod_ends_.stop(command); }

  void on_command(const agent::RemovePod& command) { pod_ends_.remove(command); }

  void on_command(const agent::RemoveContainer& command) {
    remains_.remove_ended(command.uid, command.name, command.attempt);
  }

  void on_command(agent::ResizePod command) {
    checkpoints_.when_saved([this, command = std::move(command)]() mutable { resizes_.start(std::move(command)); });
  }

  void on_command(const agent::LimitGroup& command) { cgroups_.limit_group(command); }

  /// For containers that are started from now on; those that run keep what they have.
  void on_command(const agent::ShareCpus& command) { start_means_.shared_cpus = command.cpus; }

  void on_command(const agent::SaveCheckpoint& command) { checkpoints_.save(command.file, command.text); }

  void on_command(const agent::Observe& command) { storage_.observe(command); }

  void on_command(const agent::ReclaimNode& command) { reclaim_.start(command); }

  void on_command(const agent::RelieveMemory& command) {
    relief_.run(command, pods_.views(), [this](agent::Relieved done) { events_.emit(std::move(done)); });
  }

  void on_command(const agent::SetUpVolumes& command);

  void on_command(const agent::ReadVolumeFile& command) {
    const CriPod* pod = pods_.find(command.uid);
    volume_commands_.read(command, pod == nullptr ? nullptr : pod->volumes);
  }

  void on_command(const agent::RunInContainer& command) { commands_.run(command); }

  void on_command(const agent::AskHttp& command) { prober_.ask(command); }

  void on_command(const agent::TryTcp& command) { prober_.connect(command); }

  void on_command(const agent::AskGrpc& command) { health_.ask(command); }

  void on_command(const agent::ListRemains& /*command*/) { remains_.list(); }

  void on_command(agent::RemoveRemains command) { remains_.remove(std::move(command)); }

  HostEvents events_;
  telemetry::Log log_;
  CriRuntimeOptions options_;
  Observer observer_;
  std::unique_ptr<RuntimeCalls> calls_;
  TimedCalls timed_calls_;
  CriOwner owner_;
  CriHost host_;
  CriPods pods_;
  agent::LifecycleRecords records_;
  CriStatusFeed status_feed_;
  CheckpointFiles checkpoints_;
  StartFiles start_files_{checkpoints_};
  BlockingThread files_;
  PageCacheRelief relief_;
  LogFolders log_folders_;
  CriRemains remains_;
  CriLogRotation log_rotation_;
  CriStreams streams_;
  CriCommands commands_;
  CriCheckpoints container_checkpoints_;
  VolumeThread volumes_;
  VolumeCommands volume_commands_;
  NetworkProber prober_;
  HealthProber health_;
  CriStorage storage_;
  ImageCollector image_collector_;
  CriReclaim reclaim_;
  CriPodCgroups cgroups_;
  CriResizes resizes_;
  CriSandboxes sandboxes_;
  CriPodMaker maker_;
  CriContainerEnds container_ends_;
  CriPodEnds pod_ends_;
  CriImagePulls images_;
  ContainerStartMeans start_means_;
  CriTakeover takeover_;
  CriListing listing_;
};

}  // namespace spillway::host
