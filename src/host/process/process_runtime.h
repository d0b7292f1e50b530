// The "process" runtime: containers are processes of this host in the node's cgroups, without images. Those of confined
// pods have namespaces of their own and see of this machine's files what PodRoot shows, and their pod's directory.
// Executes the agent's host commands and tells what became of them. Thread: loop. Never waits; events come later, never
// from inside execute(). Files are kept under <state>/pods/<namespace>_<name>_<uid>/: <container>/<attempt>.log, and
// _work, the pod's directory. Source: agent/contract/ports.h; spec "Node agent", 14; Kubernetes docs, "Logging
// Architecture", log locations.
#pragma once

#include "agent/contract/ports.h"
#include "api/object/meta.h"
#include "base/error.h"
#include "base/time.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/node_slice.h"
#include "host/files/checkpoint_files.h"
#include "host/kernel/blocking_thread.h"
#include "host/logs/container_log.h"
#include "host/observation/observer.h"
#include "host/probes/network_prober.h"
#include "host/process/container_commands.h"
#include "host/process/container_process.h"
#include "host/process/orphaned_cgroups.h"
#include "host/process/pod_isolator.h"
#include "host/reaction/reaction_target.h"
#include "host/volumes/volume_set.h"
#include "host/volumes/volume_thread.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::host {

struct ProcessRuntimeOptions {
  std::string state_dir;
  LogLimits logs;
  agent::PressureStats pressure = agent::PressureStats::kLeftOut;
  /// Of kubepods together; as the kubelet's --max-pods does, it bounds what this object keeps.
  std::size_t pods_max = 1000;
  /// kNamespaces: pods may be confined (agent::PodIsolation); what that takes is made at once.
  enum class Isolation { kNone, kNamespaces } isolation = Isolation::kNone;
  Duration housekeeping = seconds(2);  // between two looks for cgroups of pods that are not there
  std::vector<std::string> hidden;     // files and directories that no confined pod sees, beside the state directory
};

class ProcessRuntime final : public agent::Host, private ContainerProcess::Owner {
 public:
  /// Makes the directories. Those of pods that an earlier process left behind are removed. Errors of kNamespaces say
  /// what the kernel or a missing right keeps from being made.
  static Result<std::unique_ptr<ProcessRuntime>> create(runtime::Loop& loop, const NodeSlice& slice,
                                                        agent::Host::Receiver& receiver, telemetry::Log log,
                                                        ProcessRuntimeOptions options);
  ~ProcessRuntime() override;
  ProcessRuntime(const ProcessRuntime&) = delete;
  ProcessRuntime& operator=(const ProcessRuntime&) = delete;

  void execute(agent::HostCommand command) override;

  /// Stops everything, with that grace, and refuses new starts. `done` is called once no process of any pod is left;
  /// call again with zero grace to hurry.
  void shutdown(Duration grace, std::function<void()> done);

  /// Where the log of an attempt of a container of a known pod is. kNotFound: the pod is not known, or nothing is left
  /// of that attempt.
  Result<std::string> find_log(const api::PodKey& pod, const std::string& container, std::int32_t attempt) const;

  /// Whether a container that writes this log is alive.
  bool is_log_live(const std::string& path) const;

  /// The same pass that answers Observe, at once.
  Result<api::Summary> observe_now();

  /// What the thread that acts on memory pressure needs of a pod; null: there is no such pod, or it has no cgroup.
  std::shared_ptr<const ReactionTarget> find_target(const std::string& uid);

  /// `before_event`: called before any event is told, for what must be told first. `targets_changed`: containers came
  /// or went.
  void listen(std::function<void()> before_event, std::function<void()> targets_changed) {
    before_event_ = std::move(before_event);
    targets_changed_ = std::move(targets_changed);
  }

  /// Pods that have a cgroup, by uid.
  std::vector<api::PodKey> pods() const;

 private:
  struct PodEntry {
    agent::CreatePod command;
    WallTime created;
    CgroupDir cgroup;
    IsolatedPod isolated;
    std::string directory;
    std::optional<Error> broken;  // it could not be made
    bool stopping = false;
    bool stop_asked = false;
    bool removing = false;
    std::map<std::string, std::unique_ptr<ContainerProcess>> containers;
    std::shared_ptr<VolumeSet> volumes;            // null: it is not confined, or has ended; the thread's alone
    std::set<std::string> disk_volumes;            // that its containers may write
    std::map<std::string, std::int32_t> awaited;   // containers whose mounts are being opened: attempts
    std::shared_ptr<const ReactionTarget> target;  // null: to be made anew
  };

  ProcessRuntime(runtime::Loop& loop, const NodeSlice& slice, agent::Host::Receiver& receiver, telemetry::Log log,
                 ProcessRuntimeOptions options);

  void on_command(agent::CreatePod command);
  void on_command(agent::StartContainer command);
  void on_command(const agent::StopContainer& command);
  void on_command(const agent::StopPod& command);
  void on_command(const agent::RemovePod& command);
  void on_command(const agent::RemoveContainer& command);
  void on_command(const agent::LimitGroup& command);
  void on_command(const agent::ShareCpus& command);
  void on_command(const agent::SaveCheckpoint& command);
  void on_command(const agent::Observe& command);
  void on_command(const agent::ReclaimNode& command);
  void on_command(agent::SetUpVolumes command);
  void on_command(const agent::RunInContainer& command);

  void on_command(const agent::AskHttp& command) { prober_.ask(command); }

  void on_command(const agent::TryTcp& command) { prober_.connect(command); }

  void on_started(agent::ContainerStarted event) override;
  void on_failed(agent::ContainerStartFailed event) override;
  void on_exited(agent::ContainerExited event) override;
  void dispose(UniqueFd mounts) override;

  static std::string file_folder(const PodEntry& pod, const std::string& container);
  Outcome make_pod(PodEntry& pod);
  void open_mounts(PodEntry& pod, agent::StartContainer command, const std::string& log_path);
  void on_mounts(agent::StartContainer command, const std::string& log_path, Result<std::vector<OpenedMount>> opened);
  void launch(PodEntry& pod, agent::StartContainer command, const std::string& log_path,
              std::vector<OpenedMount> mounts);
  void release_volumes(PodEntry& pod);
  void refuse(const agent::StartContainer& command, std::string_view reason, std::string message);
  void stop_pod(PodEntry& pod, Duration grace);
  void forget_container(const std::string& uid, const std::string& name);
  void settle(const std::string& uid);
  void remove_pod(const std::string& uid);
  void remove_pod_cgroup(api::QosClass qos, const std::string& name, int tries);
  void release_ids(const PodEntry& pod);
  void update_class_shares();
  void keep_house();
  const PodEntry* find_pod(const api::PodKey& pod) const;
  void emit(agent::HostEvent event);
  void change_target(PodEntry& pod);
  std::vector<PodView> views() const;

  runtime::Loop& loop_;
  const NodeSlice& slice_;
  agent::Host::Receiver& receiver_;
  telemetry::Log log_;
  ProcessRuntimeOptions options_;
  std::optional<std::uint64_t> open_files_max_ = raise_open_files();  // of programs
  Observer observer_;
  PodIsolator isolator_;
  std::string program_folder_;  // of this program; empty: it cannot be told
  std::map<std::string, PodEntry> pods_;
  std::string shared_cpus_;  // empty: nobody said
  std::function<void()> on_shut_down_;
  std::function<void()> before_event_;
  std::function<void()> targets_changed_;
  OrphanedCgroups orphans_;
  bool shutting_down_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  CheckpointFiles checkpoints_;
  BlockingThread files_;  // removes directories
  VolumeThread volumes_;
  ContainerCommands commands_;
  NetworkProber prober_{loop_, [this](agent::HostEvent event) { emit(std::move(event)); }};
};

}  // namespace spillway::host
