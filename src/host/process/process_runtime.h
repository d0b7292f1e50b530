// The "process" runtime: containers are processes of this host in the node's cgroups, without images. Containers of
// confined pods have namespaces of their own and see the part of this machine's files that PodRoot shows, and their
// pod's directory. Executes the agent's host commands and reports their results. Thread: loop. Never waits; events are
// emitted later, never from inside execute(). Files are kept under <state>/pods/<namespace>_<name>_<uid>/:
// <container>/<attempt>.log, and _work, the pod's directory. With supervisors (docs/adr/0013-supervised-pods.md) pods
// outlive this object and its process: _pod.json and _ends.jsonl are for the next one, which finds the rest beside
// them. The commands about pods are carried out by classes of their own, on one table of pods:
//   PodMaker              makes pods, changes their resources
//   PodAttachments        attaches them to the node's network
//   ProcessContainers     starts containers, reports their ends
//   ProcessPodEnds        ends and removes pods
//   ProcessStreams        lets programs and clients into containers
//   ContainerSupervisors  holds containers and namespaces beyond the end of this process
//   ProcessTakeover       finds the pods of an earlier process
//   ProcessReclaim        removes files when the disk is full
// Source: agent/contract/ports.h; spec "Node agent", 14; Kubernetes docs, "Logging Architecture", log locations.
#pragma once

#include "agent/contract/ports.h"
#include "agent/serving/log_choice.h"
#include "api/object/meta.h"
#include "base/alive.h"
#include "base/error.h"
#include "base/time.h"
#include "host/cgroup/node_slice.h"
#include "host/files/checkpoint_files.h"
#include "host/kernel/blocking_thread.h"
#include "host/observation/observer.h"
#include "host/observation/page_cache_relief.h"
#include "host/pods/pod_runtime.h"
#include "host/pods/start_files.h"
#include "host/pods/volume_commands.h"
#include "host/probes/health_prober.h"
#include "host/probes/network_prober.h"
#include "host/process/container_supervisors.h"
#include "host/process/orphaned_cgroups.h"
#include "host/process/pod_attachments.h"
#include "host/process/pod_maker.h"
#include "host/process/process_containers.h"
#include "host/process/process_options.h"
#include "host/process/process_pod_ends.h"
#include "host/process/process_pods.h"
#include "host/process/process_reclaim.h"
#include "host/process/process_streams.h"
#include "host/process/process_takeover.h"
#include "host/reaction/host_events.h"
#include "host/reaction/reaction_target.h"
#include "host/volumes/volume_thread.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {

class ProcessRuntime final : public PodRuntime {
 public:
  /// Makes the directories. Containers of an earlier process are taken over, or removed. Errors of kNamespaces name
  /// what the kernel or a missing right prevents.
  static Result<std::unique_ptr<ProcessRuntime>> create(runtime::Loop& loop, const NodeSlice& slice,
                                                        agent::Host::Receiver& receiver, telemetry::Log log,
                                                        ProcessRuntimeOptions options);
  ~ProcessRuntime() override;
  ProcessRuntime(const ProcessRuntime&) = delete;
  ProcessRuntime& operator=(const ProcessRuntime&) = delete;

  void execute(agent::HostCommand command) override;

  void shutdown(Duration grace, std::function<void()> done) override { ends_.shut_down(grace, std::move(done)); }

  bool keep_pods() override;

  Result<std::string> find_log(const api::PodKey& pod, const std::string& container,
                               std::int32_t attempt) const override {
    return pods_.find_log(pod, container, attempt);
  }

  bool is_log_live(const std::string& path) const override { return pods_.is_log_live(path); }

  /// Ids end in the attempt, except for those that were never reported.
  std::optional<std::int32_t> attempt_of(const std::string& container_id) const override {
    return agent::attempt_of(container_id);
  }

  Result<api::Summary> observe_now() override;

  std::shared_ptr<const ReactionTarget> find_target(const std::string& uid) override { return pods_.find_target(uid); }

  Result<ContainerAccess> enter(const api::PodKey& pod, const std::string& uid, const std::string& container,
                                std::vector<std::string> argv) override {
    return streams_.enter(pod, uid, container, std::move(argv));
  }

  Result<std::shared_ptr<ContainerConsole>> console(const api::PodKey& pod, const std::string& uid,
                                                    const std::string& container) const override {
    return streams_.console(pod, uid, container);
  }

  Result<PortSession::Dial> dial(const api::PodKey& pod, const std::string& uid) override {
    return streams_.dial(pod, uid);
  }

  void listen(std::function<void()> before_event, std::function<void()> targets_changed) override {
    events_.listen(std::move(before_event), std::move(targets_changed));
  }

  std::vector<agent::RunningPod> running_pods() const override { return pods_.running(); }

  void checkpoint(const CheckpointWish& /*wish*/, CheckpointTaken answer) override {
    answer(make_error(ErrorCode::kInternalError,
                      "rpc error: code = Unimplemented desc = unknown method CheckpointContainer: containers are "
                      "processes of this machine"));
  }

  void set_device_files(StartFiles::WhenSaved when_saved) override { start_files_.set_devices(std::move(when_saved)); }

  std::vector<api::PodKey> pods() const override { return pods_.keys(); }

 private:
  ProcessRuntime(runtime::Loop& loop, const NodeSlice& slice, agent::Host::Receiver& receiver, telemetry::Log log,
                 ProcessRuntimeOptions options);

  Outcome open();

  void on_command(agent::CreatePod command) { maker_.create(std::move(command)); }

  void on_command(const agent::RunSandbox& command) { attachments_.run_sandbox(command); }

  void on_command(agent::StartContainer command);

  void on_command(const agent::StopContainer& command) { containers_.stop(command); }

  void on_command(const agent::RemoveContainer& command) { containers_.remove(command); }

  void on_command(const agent::ShareCpus& command) { containers_.share_cpus(command); }

  void on_command(const agent::StopPod& command) { ends_.stop(command); }

  void on_command(const agent::RemovePod& command) { ends_.remove(command); }

  void on_command(const agent::RunInContainer& command) { streams_.run(command); }

  void on_command(const agent::ReclaimNode& command) { reclaim_.run(command); }

  void on_command(const agent::SaveCheckpoint& command) { checkpoints_.save(command.file, command.text); }

  void on_command(const agent::AskHttp& command) { prober_.ask(command); }

  void on_command(const agent::TryTcp& command) { prober_.connect(command); }

  void on_command(const agent::AskGrpc& command) { health_.ask(command); }

  void on_command(const agent::RelieveMemory& command) {
    relief_.run(command, pods_.views(), [this](agent::Relieved done) { events_.emit(std::move(done)); });
  }

  void on_command(const agent::ReadVolumeFile& command) {
    const ProcessPod* pod = pods_.find(command.uid);
    volume_commands_.read(command, pod == nullptr ? nullptr : pod->volumes);
  }

  void on_command(const agent::SetUpVolumes& command);
  void on_command(const agent::ResizePod& command);
  void on_command(const agent::LimitGroup& command);
  void on_command(const agent::Observe& command);

  // The two commands about remains have no effect: this runtime keeps nothing of pods that it does not know.
  void on_command(const agent::ListRemains& /*command*/) {}

  void on_command(const agent::RemoveRemains& /*command*/) {}

  void keep_house();

  HostEvents events_;
  telemetry::Log log_;
  ProcessRuntimeOptions options_;
  ProcessHost host_;
  Observer observer_;
  ProcessPods pods_;
  OrphanedCgroups orphans_;
  CheckpointFiles checkpoints_;
  StartFiles start_files_{checkpoints_};
  BlockingThread files_;  // removes directories
  PageCacheRelief relief_;
  VolumeThread volumes_;
  VolumeCommands volume_commands_;
  PodMaker maker_;
  ContainerSupervisors supervisors_;
  PodAttachments attachments_;
  ProcessPodEnds ends_;
  ProcessContainers containers_;
  ProcessTakeover takeover_;
  ProcessStreams streams_;
  ProcessReclaim reclaim_;
  NetworkProber prober_;
  HealthProber health_;
  Alive alive_;
};

}  // namespace spillway::host
