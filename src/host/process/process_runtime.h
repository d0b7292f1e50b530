// The "process" runtime: containers are processes of this host in the node's cgroups, without images. Containers of
// confined pods have namespaces of their own and see the part of this machine's files that PodRoot shows, and their
// pod's directory. Executes the agent's host commands and reports their results. Thread: loop. Never waits; events are
// emitted later, never from inside execute(). Files are kept under <state>/pods/<namespace>_<name>_<uid>/:
// <container>/<attempt>.log, and _work, the pod's directory. With supervisors (docs/adr/0013-supervised-pods.md) pods
// outlive this object and its process: _pod.json and _ends.jsonl are for the next one, which finds the rest beside
// them.
// Source: agent/contract/ports.h; spec "Node agent", 14; Kubernetes docs, "Logging Architecture", log locations.
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
#include "host/network/pod_networks.h"
#include "host/observation/observer.h"
#include "host/observation/page_cache_relief.h"
#include "host/pods/pod_runtime.h"
#include "host/probes/health_prober.h"
#include "host/probes/network_prober.h"
#include "host/process/container_commands.h"
#include "host/process/container_process.h"
#include "host/process/kept_records.h"
#include "host/process/orphaned_cgroups.h"
#include "host/process/pod_isolator.h"
#include "host/reaction/reaction_target.h"
#include "host/streams/port_connector.h"
#include "host/streams/stream_sessions.h"
#include "host/supervisor/supervisor.h"
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
  /// Limit of all pods of the node; like the kubelet's --max-pods it bounds the memory of this object.
  std::size_t pods_max = 1000;
  /// kNamespaces: pods may be confined (agent::PodIsolation); what that takes is made at once.
  enum class Isolation { kNone, kNamespaces } isolation = Isolation::kNone;
  Duration housekeeping = seconds(2);  // between two searches for cgroups without pods
  std::vector<std::string> hidden;     // files and directories that no confined pod sees, beside the state directory
  SecureStreams secure_streams;        // for probes and hooks
  /// Containers have supervisors, and those of an earlier process keep running and are reported as PodsFound.
  /// check_supervision() checks that this is possible.
  bool keeps_pods = false;
  /// Pods that have a network namespace of their own are attached to this network; nullopt: they have only loopback.
  std::optional<PodNetworkOptions> network = std::nullopt;
};

class ProcessRuntime final : public PodRuntime, private ContainerProcess::Owner {
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
  void shutdown(Duration grace, std::function<void()> done) override;
  bool leave_pods() override;
  Result<std::string> find_log(const api::PodKey& pod, const std::string& container,
                               std::int32_t attempt) const override;
  bool is_log_live(const std::string& path) const override;
  /// Ids end in the attempt, except for those that were never reported.
  std::optional<std::int32_t> attempt_of(const std::string& container_id) const override;
  Result<api::Summary> observe_now() override;
  std::shared_ptr<const ReactionTarget> find_target(const std::string& uid) override;

  Result<ContainerAccess> enter(const api::PodKey& pod, const std::string& uid, const std::string& container,
                                std::vector<std::string> argv) override;
  Result<std::shared_ptr<ContainerConsole>> console(const api::PodKey& pod, const std::string& uid,
                                                    const std::string& container) const override;
  Result<PortSession::Dial> dial(const api::PodKey& pod, const std::string& uid) override;

  void listen(std::function<void()> before_event, std::function<void()> targets_changed) override {
    before_event_ = std::move(before_event);
    targets_changed_ = std::move(targets_changed);
  }

  std::vector<api::PodKey> pods() const override;

 private:
  // Names in a pod's directory; no container can have such a name.
  static constexpr std::string_view kWorkFolder = "_work";
  static constexpr std::string_view kVolumeFolder = "_volumes";
  static constexpr std::string_view kFileFolder = "_files";
  static constexpr std::string_view kPodRecord = "_pod.json";
  static constexpr std::string_view kEndsRecord = "_ends.jsonl";

  /// An attachment to the node's network. kLeft: nothing is left of it.
  enum class NetworkState { kNone, kAttached, kLeaving, kLeft };

  /// Progress of freeing a stopped pod's disk space.
  enum class FreeState { kUnasked, kAsked, kRunning, kDone };

  struct PodEntry {
    agent::CreatePod command;
    WallTime created;
    CgroupDir cgroup;
    IsolatedPod isolated;
    std::string directory;
    std::optional<Error> broken;  // why it could not be made
    bool stopping = false;
    bool stop_asked = false;
    FreeState freeing = FreeState::kUnasked;
    bool removing = false;
    NetworkState network = NetworkState::kNone;
    api::Json capabilities;  // for plug-ins (capabilities_of); null: it is attached to no network
    std::map<std::string, std::unique_ptr<ContainerProcess>> containers;
    std::shared_ptr<VolumeSet> volumes;            // null: it is not confined, or has ended; the thread's alone
    std::set<std::string> disk_volumes;            // on which its containers may write
    std::map<std::string, std::int32_t> awaited;   // containers whose mounts are being opened: attempts
    std::shared_ptr<const ReactionTarget> target;  // null: to be made anew
    bool made = true;                              // false: known from its record alone
    std::optional<Supervisor> holder;              // holds the pod's namespaces while no container runs
    KeptEnds ends;
    std::vector<std::string> mounts;                                 // volume mounts made by an earlier process
    std::vector<std::pair<Supervisor, agent::StartContainer>> left;  // by an earlier process, not taken over yet
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

  void on_command(const agent::RelieveMemory& command) {
    relief_.run(command, views(), [this](agent::Relieved done) { emit(std::move(done)); });
  }

  void on_command(agent::SetUpVolumes command);

  void on_command(const agent::ReadVolumeFile& command) {
    const auto pod = pods_.find(command.uid);
    volumes_.read(pod == pods_.end() ? nullptr : pod->second.volumes, command, emitter<agent::VolumeFileRead>());
  }

  void on_command(const agent::RunInContainer& command);
  void on_command(const agent::RunSandbox& command);

  void on_command(const agent::ListRemains& /*command*/) {}  // not used: this runtime keeps no remains without a pod

  void on_command(const agent::RemoveRemains& /*command*/) {}

  void on_command(const agent::AskHttp& command) { prober_.ask(command); }

  void on_command(const agent::TryTcp& command) { prober_.connect(command); }

  void on_command(const agent::AskGrpc& command) { health_.ask(command); }

  void on_started(agent::ContainerStarted event) override;
  void on_failed(agent::ContainerStartFailed event) override;
  void on_exited(agent::ContainerExited event) override;
  void dispose(UniqueFd mounts) override;

  static std::string file_folder(const PodEntry& pod, const std::string& container);
  static bool is_kept_folder(std::string_view name);
  Outcome remove_stale_pods() const;
  Outcome look_around();
  void read_kept_pods();
  void read_kept_pod(const std::string& directory);
  UniqueFd find_supervisors();
  bool take_supervisor(Supervisor supervisor);
  void take_namespaces(PodEntry& pod, const Supervisor& supervisor);
  void clear_cgroups(PodEntry& pod);
  void tell_found(const std::vector<std::string>& mounts);
  void adopt_containers(PodEntry& pod, agent::FoundPod& found);
  void note_end(PodEntry& pod, ContainerProcess& container, const agent::ContainerExited& event);
  void release_holder(PodEntry& pod);
  void quit(Supervisor supervisor);
  void clear_strays();
  Outcome ensure_made(PodEntry& pod);
  Outcome make_pod(PodEntry& pod);
  void open_mounts(PodEntry& pod, agent::StartContainer command, const std::string& log_path);
  void on_mounts(agent::StartContainer command, const std::string& log_path, Result<std::vector<OpenedMount>> opened);
  void launch(PodEntry& pod, agent::StartContainer command, const std::string& log_path,
              std::vector<OpenedMount> mounts);
  void release_volumes(PodEntry& pod, std::function<void()> done = {});
  void free_storage(const std::string& uid);
  void refuse(const agent::StartContainer& command, std::string_view reason, std::string message);
  void stop_pod(PodEntry& pod, Duration grace);
  void forget_container(const std::string& uid, const std::string& name);
  void settle(const std::string& uid);
  void remove_pod(const std::string& uid);
  void remove_pod_cgroup(api::QosClass qos, const std::string& name, int tries);
  void release_ids(const PodEntry& pod);
  void attach_network(PodEntry& pod);
  void leave_network(PodEntry& pod);
  void keep_network(PodEntry& pod, agent::FoundPod& found);
  bool is_at_rest(const PodEntry& pod) const;
  void update_class_shares();
  void keep_house();
  void connect(const std::string& uid, std::uint16_t port, PortSession::Answer answer);
  const PodEntry* find_pod(const api::PodKey& pod) const;
  void emit(agent::HostEvent event);

  /// Emits an answer from another thread, unless this object has been destroyed.
  template <typename Event>
  std::function<void(Event)> emitter() {
    return [this, alive = std::weak_ptr(alive_)](Event event) {
      if (!alive.expired()) emit(std::move(event));
    };
  }

  void change_target(PodEntry& pod);
  std::vector<PodView> views() const;

  runtime::Loop& loop_;
  const NodeSlice& slice_;
  agent::Host::Receiver& receiver_;
  telemetry::Log log_;
  ProcessRuntimeOptions options_;
  std::optional<std::uint64_t> open_files_max_ = raise_open_files();  // limit for started programs
  Observer observer_;
  PodIsolator isolator_;
  std::string program_folder_;   // this program's; empty: unknown
  UniqueFd supervisor_program_;  // empty: pods end with this process
  CgroupDir supervisors_;
  std::set<pid_t> strays_;  // processes there that the last check could assign to no container
  std::map<std::string, PodEntry> pods_;
  std::unique_ptr<PodNetworks> networks_;  // null: there is no network for pods
  std::string shared_cpus_;                // empty: no policy of processors has set them
  std::function<void()> on_shut_down_;
  std::function<void()> before_event_;
  std::function<void()> targets_changed_;
  OrphanedCgroups orphans_;
  bool shutting_down_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  CheckpointFiles checkpoints_;
  BlockingThread files_;  // removes directories
  PageCacheRelief relief_;
  VolumeThread volumes_;
  ContainerCommands commands_;
  PortConnector ports_;
  NetworkProber prober_{loop_, [this](agent::HostEvent event) { emit(std::move(event)); }, options_.secure_streams};
  HealthProber health_{loop_, [this](agent::HostEvent event) { emit(std::move(event)); }};
};

}  // namespace spillway::host
