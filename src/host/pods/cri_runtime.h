// Runs pods in a container runtime (containerd, CRI-O) over CRI v1. The pods' cgroups are made here, as a kubelet's
// cgroupfs driver does, and containers are in them: a container that has to die at once is killed through its cgroup,
// whatever the runtime does. An ended container is noticed by its process, and by lists of the runtime every second.
// Thread: loop. Never waits; events are emitted later, never from inside execute(). Bounds: Options::pods_max pods, a
// deadline on every call; Options::parallel_pulls pulls. Files are kept under <state>/pods/<namespace>_<name>_<uid>/:
// _volumes, _files, _ends; logs under <pod_logs_dir>/<namespace>_<name>_<uid>/<container>/<attempt>.log. Source:
// agent/contract/ports.h; spec "Pod lifecycle", 2, 5, 6, 8, 12, 13; docs/adr/0011-container-runtime.md.
#pragma once

#include "agent/contract/ports.h"
#include "agent/cri/image_pull.h"
#include "agent/cri/lifecycle_events.h"
#include "agent/cri/linux_resources.h"
#include "agent/cri/runtime_status.h"
#include "agent/cri/sandbox_config.h"
#include "base/token_bucket.h"
#include "host/cgroup/node_slice.h"
#include "host/companion/storage_feed.h"
#include "host/cri/cri_calls.h"
#include "host/files/checkpoint_files.h"
#include "host/kernel/blocking_thread.h"
#include "host/kernel/blocking_threads.h"
#include "host/logs/container_log.h"
#include "host/logs/log_rotation.h"
#include "host/observation/observer.h"
#include "host/observation/page_cache_relief.h"
#include "host/pods/credential_plugins.h"
#include "host/pods/image_collector.h"
#include "host/pods/log_folders.h"
#include "host/pods/pod_runtime.h"
#include "host/probes/health_prober.h"
#include "host/probes/network_prober.h"
#include "host/reaction/container_handle.h"
#include "host/systemd/slice_units.h"
#include "host/volumes/volume_set.h"
#include "host/volumes/volume_thread.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {

/// The end of a container, or its failed start, waits this long for the state of the sandbox.
inline constexpr Duration kSandboxDoubtMax = seconds(1);

struct CriRuntimeOptions {
  std::string state_dir;
  std::string runtime_name;  // "containerd": the scheme of container ids; empty: read from the runtime
  std::string socket;        // the runtime's, for its statistics
  std::string owner;         // marks the pods of this node in a runtime that others use too
  std::size_t pods_max = 1000;
  agent::PressureStats pressure = agent::PressureStats::kLeftOut;
  agent::ResourceFacts resources;
  agent::DnsFacts dns;
  std::string resolver_file;  // read anew for each sandbox; empty: only `dns` is used
  bool seccomp_default = false;
  agent::ImageGcPolicy image_gc;
  std::string credential_plugin_dir;  // has the programs of `credential_providers`
  std::vector<agent::CredentialProvider> credential_providers = {};
  std::string pod_logs_dir;   // all pods; empty: logs are kept in the directory of their pod
  std::string log_links_dir;  // links to logs, for collectors; empty: there are none
  LogLimits logs;             // a container's: bytes of one file, and number of files
  Duration log_check_interval = seconds(10);
  std::size_t parallel_pulls = 1;
  std::int64_t pulls_per_second = 0;           // more fail with "pull QPS exceeded"; 0: not limited
  std::int64_t pull_burst = 10;                // pulls at once, before that pace counts
  Duration request_timeout = kRuntimeCallMax;  // for calls that nothing else bounds
  std::size_t log_workers = 1;                 // threads that rotate logs
  SecureStreams secure_streams;                // for probes and hooks
  SliceUnits* slices = nullptr;                // systemd's cgroup driver: what makes the slices of pods; borrowed
};

class CriRuntime final : public PodRuntime, private StreamServer {
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
  void shutdown(Duration grace, std::function<void()> done) override;
  bool leave_pods() override;
  Result<std::string> find_log(const api::PodKey& pod, const std::string& container,
                               std::int32_t attempt) const override;
  bool is_log_live(const std::string& path) const override;
  std::optional<std::int32_t> attempt_of(const std::string& container_id) const override;
  Result<api::Summary> observe_now() override;
  std::shared_ptr<const ReactionTarget> find_target(const std::string& uid) override;
  Result<ContainerAccess> enter(const api::PodKey& pod, const std::string& uid, const std::string& container,
                                std::vector<std::string> argv) override;
  Result<std::shared_ptr<ContainerConsole>> console(const api::PodKey& pod, const std::string& uid,
                                                    const std::string& container) const override;
  Result<PortSession::Dial> dial(const api::PodKey& pod, const std::string& uid) override;

  StreamServer* stream_server() override { return this; }

  Outcome check(StreamWish& wish) override;
  void ask(const StreamWish& wish, std::move_only_function<void(Result<std::string>)> answer) override;
  void listen(std::function<void()> before_event, std::function<void()> targets_changed) override;
  std::vector<api::PodKey> pods() const override;

 private:
  static constexpr std::string_view kOwnerLabel = "spillway.dev/node";
  static constexpr Duration kInspectFirst = milliseconds(5);

  /// The newest instance of a name that was started.
  struct Container {
    std::string id;
    std::int32_t attempt = 0;
    bool running = false;
    bool inspecting = false;
    WallTime started_at;
    CgroupDir cgroup;
    std::shared_ptr<ContainerHandle> handle;  // null: no process was seen in it
    std::string termination_log;
    bool message_from_logs = false;  // FallbackToLogsOnError
    bool rotating = false;           // its log is being checked or rotated
  };

  /// Pods found so far, while further answers of the runtime are pending.
  struct Inventory;

  struct Ending {
    Instant due;  // time of the kill, whatever the runtime does
    Duration wait = milliseconds(2);
    runtime::Loop::TimerId timer = 0;
    bool sandbox_stopping = false;
    bool killed = false;
    bool at_once = false;          // nothing was to be waited for
    std::optional<Instant> empty;  // no process was left
  };

  struct Pod {
    agent::CreatePod command;
    WallTime created;
    CgroupDir cgroup;
    std::string directory;
    std::string logs;             // folder of the logs of its containers
    bool slice_starting = false;  // systemd makes its cgroup
    bool wants_sandbox = false;   // as soon as it has
    std::optional<Error> broken;  // why it could not be made
    std::shared_ptr<VolumeSet> volumes;
    std::set<std::string> disk_volumes;
    std::string sandbox;  // empty: there is none
    std::int32_t sandbox_attempt = 0;
    api::Json sandbox_config;
    Instant sandbox_since{};       // lists that began before do not contain it
    bool sandbox_doubted = false;  // a list did not have it as ready: it is being asked about
    std::string handler;           // its RuntimeClass's handler
    bool asks_for_sandbox = false;
    std::set<std::string> old_sandboxes;
    std::set<std::string> lost_sandboxes;  // sandboxes that have not been stopped
    std::map<std::string, Container> containers;
    std::map<std::string, std::string> starting;                        // names, and the images they are to have
    std::map<std::pair<std::string, std::int32_t>, std::string> ended;  // ids of earlier instances
    std::vector<agent::ContainerExited> told_late;                      // ends that wait for the state of the sandbox
    std::optional<Ending> ending;
    bool stopping = false;
    bool frees_storage = false;  // its containers' storage is removed before it is reported as stopped
    bool removing = false;
    std::shared_ptr<const ReactionTarget> target;  // null: to be made anew
  };

  /// One container on its way.
  struct Starting {
    agent::StartContainer command;
    agent::ImageWanted image;
    Instant asked{};
  };

  CriRuntime(runtime::Loop& loop, const NodeSlice& slice, std::unique_ptr<RuntimeCalls> calls,
             agent::Host::Receiver& receiver, telemetry::Log log, CriRuntimeOptions options);

  void on_command(agent::CreatePod command);
  void on_command(const agent::RunSandbox& command);
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
    const Pod* pod = find(command.uid);
    volumes_.read(pod == nullptr ? nullptr : pod->volumes, command, emitter<agent::VolumeFileRead>());
  }

  void on_command(const agent::RunInContainer& command);

  void on_command(const agent::AskHttp& command) { prober_.ask(command); }

  void on_command(const agent::TryTcp& command) { prober_.connect(command); }

  void on_command(const agent::AskGrpc& command) { health_.ask(command); }

  void on_command(const agent::ListRemains& command);
  void on_command(agent::RemoveRemains command);

  // Starting (cri_starting.cc).
  Outcome make_pod(Pod& pod);
  Outcome start_slice(Pod& pod);
  void on_slice(const std::string& uid, api::QosClass qos, Outcome started);
  Outcome open_cgroup(Pod& pod);
  Result<std::string> cgroup_path(const Pod& pod) const;
  Result<CgroupDir> open_container(const Pod& pod, const std::string& id) const;
  Result<std::vector<agent::DnsWarning>> configure_sandbox(Pod& pod) const;
  void claim(Pod& pod, agent::CreatePod command);
  Outcome follow(Pod& pod, const agent::StartContainer& command);
  void run_sandbox(const std::string& uid);
  void stop_lost_sandboxes(const std::string& uid, std::vector<std::string> left);
  void make_sandbox(const std::string& uid);
  void remove_late_sandbox(const std::string& uid, api::QosClass qos, const Result<api::Json>& ran);
  void on_sandbox(const std::string& uid, const Result<api::Json>& status);
  void want_image(Starting start);
  void on_image_answer(Starting start, agent::ImageAnswer answer);
  void pull_next();
  void pull(Starting start, const std::string& name, std::vector<api::Json> auths, std::string last_problem,
            Instant began);
  void on_pull_ended(Starting start, const Result<agent::PulledImage>& pulled);
  void look_at_image(Starting start);
  void place_mounts(Starting start, api::Json image);
  void create_container(Starting start, const api::Json& image, std::vector<PlacedMount> mounts);
  void start_created(Starting start, const std::string& id, std::string termination_log);
  void on_running(Starting start, const std::string& id, std::string termination_log, const Result<api::Json>& status);
  void refuse(const agent::StartContainer& command, std::string_view reason, std::string message);
  void refuse_by_runtime(const agent::StartContainer& command, std::string_view reason, std::string message);
  bool may_start(const Starting& start);
  /// The first process of a container, held; null: there is none.
  static std::shared_ptr<ContainerHandle> make_handle(const CgroupDir& cgroup, const std::string& name);
  /// The pod's addresses in a sandbox status.
  static std::vector<std::string> addresses_in(const api::Json& status);

  // Ending (cri_ending.cc).
  void watch(const std::string& uid, const std::string& name);
  void unwatch(Container& container);
  void inspect(const std::string& uid, const std::string& name, Duration wait);
  void tell_ends(Pod& pod);
  void on_ended(const std::string& uid, const std::string& name, const api::Json& status);
  std::string termination_message(const Pod& pod, const std::string& name, const api::Json& status) const;
  void stop_containers(const std::string& uid, Duration grace);
  void end_pod(const std::string& uid, Duration grace);
  void pursue(const std::string& uid);
  void stop_sandbox(const std::string& uid);
  void finish_ending(const std::string& uid);
  void free_storage(const std::string& uid);
  void remove_from_runtime(const std::string& uid);
  void remove_sandboxes(const std::string& uid, std::vector<std::string> left);
  void forget(const std::string& uid);
  void remove_cgroup(api::QosClass qos, const std::string& uid, int tries);
  void stop_slice(api::QosClass qos, const std::string& uid);
  void report_shut_down();

  // Logs (cri_logs.cc).
  void rotate_logs();
  void on_turned(const std::string& uid, const std::string& name, const std::string& id, const Result<LogTurn>& turn);
  void reopen_log(const std::string& uid, const std::string& name, const std::string& id, LogTurn turn);
  /// `then`: called once the runtime has answered, or at once if there is nothing to remove.
  void remove_ended(
      const std::string& uid, const std::string& name, std::int32_t attempt, const std::function<void()>& then = [] {});

  // Removals requested by the planner (cri_remains.cc).
  void tell_remains(agent::RemainsListed listed);
  void remove_containers(std::vector<agent::ContainerRemoval> left, std::function<void()> then);
  void remove_container(const agent::ContainerRemoval& removal, std::function<void()> then);
  void remove_idle_sandboxes(std::vector<std::string> left, std::function<void()> then);
  void remove_directories(std::vector<std::string> names);

  // Disks (cri_storage.cc).
  std::vector<PodView> views() const;
  static PodFolder folder_of(const std::string& uid, const Pod& pod);
  Result<agent::ImageFileSystem> image_file_system() const;
  bool is_wanted(const ListedImage& image) const;
  void ask_for_storage();
  void reclaim(std::vector<eviction::ReclaimAction> actions, agent::Reclaimed done);
  void reclaim_containers(std::vector<eviction::ReclaimAction> actions, agent::Reclaimed done);
  void once_looked_at(Instant since, std::function<void()> then, std::optional<std::int64_t> floor = std::nullopt);

  // Listing (cri_listing.cc).
  void relist();
  void on_lists(const api::Json& sandboxes, const api::Json& containers);
  void doubt_sandboxes(const api::Json& sandboxes, Instant listed);
  void on_doubted(const std::string& uid, const std::string& id, const Result<api::Json>& status);
  void ask_status();
  void ask_images();
  void report_runtime();
  void remove_strays(const api::Json& sandboxes, const api::Json& containers);
  void remove_stray(const std::string& id, bool is_sandbox);

  // Takeover of pods of earlier processes (cri_takeover.cc).
  void look_around(const api::Json& sandboxes, const api::Json& containers);
  void ask_about(const std::shared_ptr<Inventory>& all, std::string_view method, api::Json request,
                 std::function<void(const api::Json&)> then);
  void look_at_sandbox(const std::shared_ptr<Inventory>& all, const api::Json& sandbox);
  void look_at_container(const std::shared_ptr<Inventory>& all, const api::Json& container);
  void release(const std::shared_ptr<Inventory>& all);
  void take_over(Inventory& all);
  void find_remains(Inventory& all) const;
  void adopt(Pod& pod, const std::vector<std::string>& mounts);
  std::vector<std::string> mounts_of_pods() const;

  Pod* find(const std::string& uid);
  const Pod* find_pod(const api::PodKey& pod) const;
  static bool has_terminal(const Pod& pod, std::string_view name);
  void call(std::string_view method, api::Json request, Duration deadline, RuntimeCalls::Answer answer);
  void tell(const std::string& uid, const std::string& container, agent::PodNotice::Weight weight, std::string reason,
            std::string message);
  void emit(agent::HostEvent event);

  /// Emits an answer from another thread, unless this object has been destroyed.
  template <typename Event>
  std::function<void(Event)> emitter() {
    return [this, alive = std::weak_ptr(alive_)](Event event) {
      if (!alive.expired()) emit(std::move(event));
    };
  }

  void change_target(Pod& pod);
  void limit_all_pods(agent::LimitedGroup group, const CgroupLimits& limits);
  void update_class_limits();
  void limit_class(api::QosClass qos, const CgroupLimits& limits);
  api::Json filter() const;

  runtime::Loop& loop_;
  const NodeSlice& slice_;
  agent::Host::Receiver& receiver_;
  telemetry::Log log_;
  CriRuntimeOptions options_;
  Observer observer_;
  std::map<std::string, Pod> pods_;
  agent::ImagePulls images_;
  agent::LifecycleRecords records_;
  std::deque<std::pair<Starting, std::string>> pulls_;  // waiting ones, with the names to pull
  std::size_t pulling_ = 0;
  std::optional<std::int64_t> available_before_;  // for images, when the reclaim under way began
  std::optional<TokenBucket> pull_tokens_;        // nullopt: pulls are not limited
  std::optional<Instant> status_at_;              // time of the last good answer
  agent::RuntimeStatus runtime_status_;
  std::vector<agent::NodeImage> node_images_;
  std::optional<agent::RuntimeReported> reported_;
  enum class LookedAround { kNot, kAsking, kDone };
  LookedAround looked_around_ = LookedAround::kNot;
  std::set<std::string> strays_;  // ids that are being removed
  std::string version_;           // the runtime's, when unknown at the start
  std::string shared_cpus_;
  std::map<api::QosClass, CgroupLimits> class_limits_;  // as they were last written
  std::size_t slices_stopping_ = 0;
  std::function<void()> on_shut_down_;
  std::function<void()> before_event_;
  std::function<void()> targets_changed_;
  bool shutting_down_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  CheckpointFiles checkpoints_;
  BlockingThread files_;
  PageCacheRelief relief_;
  LogFolders log_folders_;
  BlockingThreads log_files_;
  VolumeThread volumes_;
  NetworkProber prober_{loop_, [this](agent::HostEvent event) { emit(std::move(event)); }, options_.secure_streams};
  HealthProber health_{loop_, [this](agent::HostEvent event) { emit(std::move(event)); }};
  std::unique_ptr<RuntimeCalls> calls_;
  StorageFeed storage_;
  CredentialPlugins credential_plugins_;
  ImageCollector image_collector_;
};

}  // namespace spillway::host
