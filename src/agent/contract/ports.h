// Commands of the agent's engines to the machine, and the machine's events. The commands are data: host/ executes them
// on a real machine, sim/ on a simulated one. Thread: loop. Every StartContainer is answered by ContainerStarted or
// ContainerStartFailed; every started container by exactly one ContainerExited.
#pragma once

#include "agent/contract/command_ports.h"
#include "agent/contract/device_ports.h"
#include "agent/contract/probe_ports.h"
#include "agent/contract/remains_ports.h"
#include "agent/contract/runtime_ports.h"
#include "agent/contract/volume_ports.h"
#include "api/object/pod.h"
#include "api/object/summary.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "policy/admission/cpu_topology.h"
#include "policy/admission/sysctls.h"
#include "policy/containers/pod_resize.h"
#include "policy/eviction/cache_reclaim.h"
#include "policy/eviction/containerfs.h"
#include "policy/eviction/reclaim.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::agent {

// Commands.

/// Namespaces of its own that all containers of a pod are in, and what is written into them before each one starts.
struct PodIsolation {
  bool ipc = false;
  bool network = false;                                      // a network with the loopback device alone
  std::vector<std::pair<std::string, std::string>> sysctls;  // dots between the parts of a name
  /// The pod is kept to a view of the machine of its own: user, mount and host name namespaces here, process and cgroup
  /// namespaces for each container. The rest counts only then.
  bool confined = false;
  bool host_pids = false;     // containers of the pod see all processes of the machine
  std::string hostname = {};  // empty: the machine's

  friend bool operator==(const PodIsolation&, const PodIsolation&) = default;
};

/// Makes the pod's cgroup and directories. Repeating it for the same uid is harmless.
struct CreatePod {
  std::string uid;
  api::PodKey pod;
  api::QosClass qos = api::QosClass::kBestEffort;
  std::optional<Bytes> memory_limit;  // the sum, if all containers have a limit
  std::optional<std::int64_t> cpu_limit_milli;
  std::int64_t cpu_request_milli = 0;
  std::optional<std::int64_t> pids_max;
  bool host_network = false;
  PodIsolation isolation;
  std::shared_ptr<const api::Pod> definition = nullptr;  // for machines that run images
};

/// The CPUs and NUMA nodes of a container; an empty list is no restriction. In the kernel's format ("0-3,8").
struct Cpuset {
  std::string cpus;
  std::string memory_nodes;
  bool shares = false;  // `cpus` is the pool that ShareCpus changes

  friend bool operator==(const Cpuset&, const Cpuset&) = default;
};

/// The user of a container of a confined pod, and its rights: ids and capabilities of its pod's user namespace.
struct ContainerSecurity {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
  std::uint64_t capabilities = 0;  // bits as the kernel numbers them; without root the set only limits capabilities
  bool read_only_root = false;
  bool filters_calls = false;  // system calls that RuntimeDefault refuses are refused

  friend bool operator==(const ContainerSecurity&, const ContainerSecurity&) = default;
};

struct StartContainer {
  std::string uid;
  std::string name;
  std::int32_t attempt = 0;  // grows with every restart; names the log file
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;
  std::string working_dir;  // empty: the pod's directory
  std::optional<Bytes> memory_limit;
  std::optional<std::int64_t> cpu_limit_milli;
  std::int64_t cpu_request_milli = 0;
  std::int32_t oom_score_adj = 0;
  DeviceGrant devices;  // environment of devices is in `env`
  Cpuset cpuset;
  ContainerSecurity security;
  std::vector<VolumeBinding> volumes;  // mounted in this order; used for confined pods only
  std::vector<ManagedFile> files;      // used for confined pods only
  bool message_from_logs = false;      // FallbackToLogsOnError: without a message in its file the end of its log is one
  /// For machines that run images: the present pod, and the credentials for its images.
  std::shared_ptr<const api::Pod> definition = nullptr;
  std::vector<PullSecret> pull_secrets = {};
  bool standard_input = false;   // clients may attach standard input; otherwise it is empty
  bool input_ends_once = false;  // with the first client that has given some
  bool terminal = false;
  std::string target = {};  // the container whose processes are visible; empty: none but its own
  std::string image = {};   // image as in the definition; a machine that keeps pods reports it later (FoundContainer)
};

/// Sets the CPUs of all containers that share CPUs, running or not.
struct ShareCpus {
  std::string cpus;
};

/// Replaces a file of the node's state directory as a whole.
struct SaveCheckpoint {
  std::string file;  // a plain name
  std::string text;
};

/// SIGTERM, and SIGKILL to everything in the container's cgroup after `grace`; zero: SIGKILL at once.
struct StopContainer {
  std::string uid;
  std::string name;
  Duration grace{};
};

/// Stops all containers of the pod, as StopContainer does one. Answered by PodStopped when no process is left.
struct StopPod {
  std::string uid;
  Duration grace{};
  /// The answer waits until the files of its containers are deleted too, but for their logs, or until that takes too
  /// long: a measurement of the disks before that would lead to the eviction of another pod.
  bool storage_freed = false;
};

/// Removes the cgroups and directories of a stopped pod. Logs go with them.
struct RemovePod {
  std::string uid;
};

/// Deletes the logs that an ended container left behind. Harmless for a container that does not exist, and for one that
/// runs.
struct RemoveContainer {
  std::string uid;
  std::string name;
  std::int32_t attempt = 0;
};

/// The limits of the processes of a cgroup together. Absent: not limited.
struct GroupLimits {
  std::optional<Bytes> memory;
  std::optional<std::int64_t> cpu_milli;
  std::optional<std::int64_t> pids_max;
  std::map<std::int64_t, Bytes> huge_pages;  // page size in bytes → limit

  friend bool operator==(const GroupLimits&, const GroupLimits&) = default;
};

/// Groups that enforceNodeAllocatable limits: all pods together, and the daemons with reservations.
enum class LimitedGroup { kPods, kSystemReserved, kKubeReserved };

/// Limits a group. Answered by GroupLimited.
struct LimitGroup {
  LimitedGroup group = LimitedGroup::kPods;
  std::string cgroup;  // for daemons: the path of their cgroup in the hierarchy, which has to exist; for pods: empty
  GroupLimits limits;
};

/// The extent of an observation. kNodeMemory: node.memory and the "pods" system container, from descriptors kept open;
/// cheap enough for every millisecond. A host may always observe everything.
enum class ObserveDepth { kNodeMemory, kWhole };

/// Requests fresh statistics; answered by Observed with the same id.
struct Observe {
  std::uint64_t id = 0;
  ObserveDepth depth = ObserveDepth::kWhole;
};

/// Frees space before a pod is evicted for it: kContainers, everything that ended containers left behind (files, logs);
/// kImages, images that no container uses. Answered by Reclaimed with the same id.
struct ReclaimNode {
  std::uint64_t id = 0;
  std::vector<eviction::ReclaimAction> actions;  // carried out in this order
};

/// Reclaims page cache from the cgroups of pods, one after the other. Answered by Relieved with the same id.
struct RelieveMemory {
  std::uint64_t id = 0;
  std::vector<eviction::CacheReclaim> pods;
};

/// Changes limits and weights of a pod that runs, and of its containers, without a restart, once the checkpoints that
/// were saved before are on the disk. The order of the writes follows the limits that the cgroups have; `before` counts
/// where they cannot be read. Nothing is written if a memory limit is to be lowered below what is used. A container
/// that does not run is left out. Answered by PodResized with the same id.
struct ResizePod {
  std::uint64_t id = 0;
  std::string uid;
  containers::GroupChange pod;                           // change of the pod's cgroup
  std::vector<containers::GroupChange> containers;       // changes of its containers
  std::shared_ptr<const api::Pod> definition = nullptr;  // with the allocated resources; for machines that run images
};

using HostCommand =
    std::variant<CreatePod, StartContainer, StopContainer, StopPod, RemovePod, RemoveContainer, LimitGroup, Observe,
                 ReclaimNode, ShareCpus, SaveCheckpoint, SetUpVolumes, ReadVolumeFile, RunInContainer, AskHttp, TryTcp,
                 AskGrpc, RunSandbox, ListRemains, RemoveRemains, RelieveMemory, ResizePod>;

// Events.

struct ContainerStarted {
  std::string uid;
  std::string name;
  std::int32_t attempt = 0;
  std::int64_t pid = 0;
  WallTime at;
  std::string container_id = {};  // id with the scheme of its runtime; empty: made from the names
  std::string image_id = {};
};

struct ContainerStartFailed {
  std::string uid;
  std::string name;
  std::int32_t attempt = 0;
  std::string reason;  // "RunContainerError", "CreateContainerError"
  std::string message;
};

struct ContainerExited {
  std::string uid;
  std::string name;
  std::int32_t attempt = 0;
  std::int32_t exit_code = 0;  // 128 + signal if killed
  std::int32_t signal = 0;
  bool oom_killed = false;
  WallTime started_at;
  WallTime finished_at;
  std::string container_id = {};  // as of ContainerStarted
  std::string reason = {};        // empty: it follows from the code
  std::string message = {};       // the termination message
};

/// No process of the pod is left. Also the answer to StopPod for an unknown or empty pod.
struct PodStopped {
  std::string uid;
};

/// Statistics, read after the Observe with this id. An error names the file that could not be read. `depth`: the extent
/// that was read, which may exceed the requested one. `layout`: the layout of the node's file systems, as far as it is
/// known; the first reported layout stays valid.
struct Observed {
  std::uint64_t id = 0;
  Result<api::Summary> summary;
  ObserveDepth depth = ObserveDepth::kWhole;
  std::optional<eviction::StorageLayout> layout = {};
};

/// The result of one action of ReclaimNode.
struct ReclaimOutcome {
  eviction::ReclaimAction action{};
  std::int64_t deleted = 0;  // containers or images
  Bytes freed;               // may be less than the true amount
  std::string problem;       // why less than wanted was freed: "the process runtime has no images"
};

struct Reclaimed {
  std::uint64_t id = 0;
  std::vector<ReclaimOutcome> outcomes;
};

/// The answer to RelieveMemory: one outcome for each pod that was there.
struct Relieved {
  std::uint64_t id = 0;
  std::vector<eviction::ReliefOutcome> outcomes;
};

/// The answer to ResizePod: all steps are made, or why not. After a problem any of them may have been.
struct PodResized {
  std::uint64_t id = 0;
  std::string uid;
  std::string problem;  // in upstream's words; empty: none
};

/// The answer to LimitGroup: the limits hold, or why not.
struct GroupLimited {
  LimitedGroup group = LimitedGroup::kPods;
  Outcome outcome;
};

/// A measure has changed: observe now, do not wait for the timer. Never a reason to kill by itself.
struct PressureWake {
  std::string source;  // "psi", "memory.events", "memcg-threshold"
};

/// The memory that is left, by each estimator that could be read (policy/eviction/memory_estimate.h).
struct MemoryLeft {
  Bytes available;                     // by the working set
  std::optional<Bytes> mem_available;  // without swapping
  std::optional<Bytes> swap_left;
};

/// The machine has carried out the published plan by itself (agent/eviction/reaction.h): the pod `uid` is being ended,
/// with the grace of a hard threshold or, in an emergency, at once. Precedes all events that follow from it.
struct Reacted {
  std::string uid;
  bool emergency = false;  // memory would not have lasted for the grace
  // the plan is carried out for a pod whose grace had begun: it is killed now
  bool escalated = false;
  std::optional<MemoryLeft> node;                           // the reading that led to it
  std::optional<MemoryLeft> pods;                           // the "pods" system container
  std::vector<std::pair<std::string, Bytes>> working_sets;  // pods whose working set could be read, by UID
  std::vector<std::pair<std::string, Bytes>> containers;    // containers of the pod `uid`: working sets by name
  WallTime at;                                              // time of the reading
  Duration took{};                                          // from the reading to the signal
};

using HostEvent = std::variant<ContainerStarted, ContainerStartFailed, ContainerExited, PodStopped, Observed,
                               PressureWake, Reacted, Reclaimed, GroupLimited, VolumesSetUp, VolumeFileRead,
                               RanInContainer, HttpAnswered, TcpTried, GrpcAnswered, SandboxRan, SandboxLost, PodNotice,
                               NodeNotice, RuntimeReported, PodsFound, RemainsListed, Relieved, PodResized>;

struct HugePages {
  std::int64_t page_size_kib = 0;
  std::int64_t pages = 0;

  friend bool operator==(const HugePages&, const HugePages&) = default;
};

/// Facts about the machine that do not change while the agent runs.
struct MachineInfo {
  std::string machine_id;
  std::string system_uuid;
  std::string boot_id;
  std::string kernel_version;
  std::string os_image;
  std::string operating_system = "linux";
  std::string architecture = "amd64";  // architecture in Go's spelling
  std::string hostname;
  std::string internal_ip;
  std::vector<std::string> addresses = {};  // addresses of its interfaces, canonical; empty: unknown
  std::string container_runtime_version;    // "process://0.1.0"
  std::int64_t cpu_milli = 0;
  admission::CpuTopology cpus;
  admission::NumaLayout numa;
  Bytes memory;
  Bytes ephemeral_storage;
  std::int64_t pids_max = 0;
  std::vector<HugePages> huge_pages = {};  // one entry for every size there is, even without pages
  int cgroup_version = 2;
  /// Namespaces that the runtime does not make: every pod is in the host's.
  admission::HostNamespaces shared_namespaces{.ipc = true, .net = true};
  /// A pod may request a network namespace of its own, although the runtime makes none by itself.
  bool network_on_request = false;
  /// Pods are confined: their containers' security contexts are carried out, or refused.
  bool confines_pods = false;
  /// Containers are made from images, and pods have a sandbox.
  bool runs_images = false;
  /// Pods outlive the agent: PodsFound lists them.
  bool keeps_pods = false;
  /// The reason why AppArmor profiles cannot be enforced; empty: they can.
  std::string app_armor_error = "AppArmor is not enabled on the host";
};

/// Port: the machine.
class Host {
 public:
  class Receiver {
   public:
    virtual ~Receiver() = default;
    virtual void on_host_event(HostEvent event) = 0;
  };

  virtual ~Host() = default;
  /// Never calls back from inside execute().
  virtual void execute(HostCommand command) = 0;
};

}  // namespace spillway::agent
