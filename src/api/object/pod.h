// v1.Pod as the engines see it: the fields that decisions read. Everything else of a stored object is kept by the
// codec's base document (codec.h, encode_over) and never lost. Thread: any. Source: Kubernetes API reference, "Pod".
#pragma once

#include "api/json/json.h"
#include "api/object/meta.h"
#include "api/object/taint.h"
#include "api/text/quantity.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spillway::api {

using ResourceList = std::map<std::string, Quantity, std::less<>>;

struct ResourceRequirements {
  ResourceList limits;
  ResourceList requests;

  friend bool operator==(const ResourceRequirements&, const ResourceRequirements&) = default;
};

/// A key of a ConfigMap or Secret of the pod's namespace.
struct KeySelector {
  std::string name;
  std::string key;
  bool optional = false;

  friend bool operator==(const KeySelector&, const KeySelector&) = default;
};

/// valueFrom.fieldRef.
struct PodFieldSelector {
  std::string api_version;
  std::string field_path;

  friend bool operator==(const PodFieldSelector&, const PodFieldSelector&) = default;
};

/// A limit or request of a container of the pod, in units of `divisor`.
struct ResourceFieldSelector {
  std::string container_name;  // empty: the container that asks
  std::string resource;        // "limits.cpu"
  std::optional<Quantity> divisor;

  friend bool operator==(const ResourceFieldSelector&, const ResourceFieldSelector&) = default;
};

/// valueFrom.fileKeyRef: a variable of an environment file in a volume of the pod.
struct FileKeySelector {
  std::string volume_name;
  std::string path;  // relative to the root of the volume
  std::string key;
  bool optional = false;

  friend bool operator==(const FileKeySelector&, const FileKeySelector&) = default;
};

struct EnvVar {
  std::string name;
  std::string value;
  std::optional<PodFieldSelector> field;
  std::optional<ResourceFieldSelector> resource_field;
  std::optional<KeySelector> config_map_key;
  std::optional<KeySelector> secret_key;
  std::optional<FileKeySelector> file_key;

  friend bool operator==(const EnvVar&, const EnvVar&) = default;
};

/// Takes all keys of a ConfigMap, of a Secret, or of one each.
struct EnvFromSource {
  std::string prefix;
  std::string config_map;  // its name; empty: none
  bool config_map_optional = false;
  std::string secret;
  bool secret_optional = false;

  friend bool operator==(const EnvFromSource&, const EnvFromSource&) = default;
};

struct ContainerPort {
  std::string name;
  std::int32_t container_port = 0;
  std::int32_t host_port = 0;
  std::string host_ip;
  std::string protocol;

  friend bool operator==(const ContainerPort&, const ContainerPort&) = default;
};

/// securityContext.appArmorProfile. Source: Kubernetes docs, "Restrict a Container's Access to Resources with
/// AppArmor".
struct AppArmorProfile {
  std::string type;  // RuntimeDefault, Unconfined, Localhost
  std::optional<std::string> localhost_profile;

  friend bool operator==(const AppArmorProfile&, const AppArmorProfile&) = default;
};

struct SeccompProfile {
  std::string type;  // RuntimeDefault, Unconfined, Localhost
  std::string localhost_profile;

  friend bool operator==(const SeccompProfile&, const SeccompProfile&) = default;
};

/// securityContext of a container, without its AppArmor profile.
struct SecurityContext {
  std::optional<bool> privileged;
  std::optional<std::int64_t> run_as_user;
  std::optional<std::int64_t> run_as_group;
  std::optional<bool> run_as_non_root;
  std::optional<bool> read_only_root_filesystem;
  std::vector<std::string> capabilities_add;
  std::vector<std::string> capabilities_drop;
  std::optional<SeccompProfile> seccomp;
  std::optional<bool> allow_privilege_escalation;
  std::string proc_mount;  // "", Default, Unmasked
  Json selinux;            // seLinuxOptions; null if absent

  friend bool operator==(const SecurityContext&, const SecurityContext&) = default;
};

/// securityContext of a pod, without sysctls and its AppArmor profile.
struct PodSecurityContext {
  bool given = false;  // the member is there, if only as {}
  std::optional<std::int64_t> run_as_user;
  std::optional<std::int64_t> run_as_group;
  std::optional<bool> run_as_non_root;
  std::vector<std::int64_t> supplemental_groups;
  std::optional<std::int64_t> fs_group;
  std::optional<SeccompProfile> seccomp;
  std::string supplemental_groups_policy;  // "", Merge, Strict
  Json selinux;                            // seLinuxOptions; null if absent

  friend bool operator==(const PodSecurityContext&, const PodSecurityContext&) = default;
};

struct VolumeMount {
  std::string name;  // the name of the volume
  std::string mount_path;
  bool read_only = false;
  std::string recursive_read_only;  // "", Disabled, IfPossible, Enabled
  std::string sub_path;
  std::string sub_path_expr;
  std::string mount_propagation;  // "", None, HostToContainer, Bidirectional

  friend bool operator==(const VolumeMount&, const VolumeMount&) = default;
};

struct Sysctl {
  std::string name;
  std::string value;

  friend bool operator==(const Sysctl&, const Sysctl&) = default;
};

/// spec.os: the operating system the pod was written for.
struct PodOs {
  std::string name;

  friend bool operator==(const PodOs&, const PodOs&) = default;
};

/// A Secret of the pod's namespace.
struct SecretReference {
  std::string name;

  friend bool operator==(const SecretReference&, const SecretReference&) = default;
};

/// exitCodes of a restart rule.
struct ExitCodeRequirement {
  std::string op;  // In, NotIn
  std::vector<std::int64_t> values;

  friend bool operator==(const ExitCodeRequirement&, const ExitCodeRequirement&) = default;
};

/// An entry of restartPolicyRules: the action for a container that exits with one of some codes.
struct RestartRule {
  std::string action;  // Restart, RestartAllContainers
  std::optional<ExitCodeRequirement> exit_codes;

  friend bool operator==(const RestartRule&, const RestartRule&) = default;
};

struct Container {
  std::string name;
  std::string image;
  std::string image_pull_policy;  // "", Always, IfNotPresent, Never
  std::vector<std::string> command;
  std::vector<std::string> args;
  std::string working_dir;
  std::vector<EnvVar> env;
  std::vector<EnvFromSource> env_from;
  std::vector<ContainerPort> ports;
  ResourceRequirements resources;
  std::string restart_policy;              // "": that of the pod; "Always" makes an init container a sidecar
  std::vector<RestartRule> restart_rules;  // the first that matches decides before restart_policy
  std::optional<AppArmorProfile> app_armor;
  SecurityContext security;
  std::vector<VolumeMount> volume_mounts;
  std::string termination_message_path;
  std::string termination_message_policy;  // "", File, FallbackToLogsOnError
  bool standard_input = false;
  bool standard_input_once = false;
  bool tty = false;
  std::string target_container_name;  // ephemeral containers only: whose processes it sees
  Json liveness_probe;                // null if absent, as the next three; read by api/object/probe.h
  Json readiness_probe;
  Json startup_probe;
  Json lifecycle;

  friend bool operator==(const Container&, const Container&) = default;
};

/// True if the init container has the restartPolicy Always.
bool is_sidecar(const Container& init_container);

inline constexpr std::string_view kRestartAllContainers = "RestartAllContainers";
/// True if the container has a rule with this action.
bool has_restart_action(const Container& container, std::string_view action);

struct EmptyDirVolume {
  std::string medium;
  std::optional<Quantity> size_limit;

  friend bool operator==(const EmptyDirVolume&, const EmptyDirVolume&) = default;
};

struct Volume {
  std::string name;
  std::string source;  // the member that is set: "emptyDir", "hostPath", "configMap", …
  Json definition;     // the value of that member
  std::optional<EmptyDirVolume> empty_dir;

  friend bool operator==(const Volume&, const Volume&) = default;
};

struct PodSpec {
  std::string node_name;
  StringMap node_selector;
  Json affinity;  // null if absent; read by api/object/node_affinity.h
  std::vector<Toleration> tolerations;
  std::vector<Container> init_containers;
  std::vector<Container> containers;
  std::vector<Container> ephemeral_containers;
  std::vector<Volume> volumes;
  std::string restart_policy;
  std::optional<std::int64_t> termination_grace_period_seconds;
  std::optional<std::int64_t> active_deadline_seconds;
  std::optional<std::int32_t> priority;
  std::string priority_class_name;
  std::string preemption_policy;
  std::string scheduler_name;
  std::string service_account_name;
  std::vector<SecretReference> image_pull_secrets;
  std::string runtime_class_name;
  std::optional<bool> host_users;
  bool host_network = false;
  bool host_ipc = false;
  bool host_pid = false;
  std::optional<bool> share_process_namespace;
  std::string hostname;
  std::string hostname_override;  // before hostname and subdomain; may have dots
  std::string subdomain;
  std::optional<bool> set_hostname_as_fqdn;
  std::string dns_policy;
  Json dns_config;    // null if absent
  Json host_aliases;  // null if absent
  std::optional<bool> enable_service_links;
  std::optional<PodOs> os;
  Json readiness_gates;                      // null if absent; a list of {conditionType}
  Json topology_spread;                      // topologySpreadConstraints; null if absent
  Json scheduling_gates;                     // null if absent; a list of {name}
  std::vector<Sysctl> sysctls;               // securityContext.sysctls
  std::optional<AppArmorProfile> app_armor;  // securityContext.appArmorProfile
  PodSecurityContext security;
  ResourceList overhead;
  std::optional<ResourceRequirements> resources;  // pod level

  friend bool operator==(const PodSpec&, const PodSpec&) = default;
};

struct PodCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  std::optional<WallTime> last_probe_time;
  std::optional<WallTime> last_transition_time;
  std::int64_t observed_generation = 0;  // the pod's, when the condition was written; 0: unknown

  friend bool operator==(const PodCondition&, const PodCondition&) = default;
};

struct ContainerStateWaiting {
  std::string reason;
  std::string message;

  friend bool operator==(const ContainerStateWaiting&, const ContainerStateWaiting&) = default;
};

struct ContainerStateRunning {
  std::optional<WallTime> started_at;

  friend bool operator==(const ContainerStateRunning&, const ContainerStateRunning&) = default;
};

struct ContainerStateTerminated {
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;
  std::string reason;
  std::string message;
  std::optional<WallTime> started_at;
  std::optional<WallTime> finished_at;
  std::string container_id;

  friend bool operator==(const ContainerStateTerminated&, const ContainerStateTerminated&) = default;
};

struct ContainerState {
  using Waiting = ContainerStateWaiting;
  using Running = ContainerStateRunning;
  using Terminated = ContainerStateTerminated;

  std::optional<Waiting> waiting;
  std::optional<Running> running;
  std::optional<Terminated> terminated;

  friend bool operator==(const ContainerState&, const ContainerState&) = default;
};

struct ContainerStatus {
  std::string name;
  ContainerState state;
  ContainerState last_state;
  bool ready = false;
  std::optional<bool> started;
  std::int32_t restart_count = 0;
  std::string image;
  std::string image_id;
  std::string container_id;
  std::optional<ResourceRequirements> resources;  // in force on the node
  ResourceList allocated_resources;               // requests that the node has admitted
  Json volume_mounts;                             // null if absent

  friend bool operator==(const ContainerStatus&, const ContainerStatus&) = default;
};

struct PodStatus {
  std::int64_t observed_generation = 0;  // the pod's that the status is about; 0: unknown
  std::string phase;
  std::string reason;
  std::string message;
  std::string host_ip;
  std::string pod_ip;
  std::vector<std::string> further_ips;  // the entries of podIPs behind the first; read, not written
  std::string qos_class;
  std::string nominated_node_name;
  std::string resize;  // nodes of Kubernetes 1.32: "", Proposed, InProgress, Deferred, Infeasible
  std::optional<ResourceRequirements> resources;  // pod level, in force on the node
  ResourceList allocated_resources;               // the pod's requests that the node has admitted
  std::optional<WallTime> start_time;
  std::vector<PodCondition> conditions;
  std::vector<ContainerStatus> init_container_statuses;
  std::vector<ContainerStatus> container_statuses;
  std::vector<ContainerStatus> ephemeral_container_statuses;

  friend bool operator==(const PodStatus&, const PodStatus&) = default;
};

struct Pod {
  static constexpr std::string_view kKind = "Pod";
  static constexpr std::string_view kApiVersion = "v1";
  ObjectMeta metadata;
  PodSpec spec;
  PodStatus status;

  PodKey key() const { return {metadata.ns, metadata.name}; }

  friend bool operator==(const Pod&, const Pod&) = default;
};

/// True if some exit of a container, or init container, may restart all containers of the pod.
bool may_restart_all(const PodSpec& spec);
/// Succeeded or Failed.
bool is_terminal(const Pod& pod);
/// spec.priority, 0 if absent.
std::int32_t priority_of(const Pod& pod);

inline constexpr std::string_view kConfigSourceAnnotation = "kubernetes.io/config.source";
inline constexpr std::string_view kConfigMirrorAnnotation = "kubernetes.io/config.mirror";

/// True if the source annotation is there and not "api": the pod is from a file or URL of its node.
bool is_static(const Pod& pod);
/// True if the pod represents a static pod in the API.
bool is_mirror(const Pod& pod);
/// Static, mirror, or priority >= 2000000000. Source: spec "Eviction manager", 8.
bool is_critical(const Pod& pod);
/// Critical and of class system-node-critical.
bool is_node_critical(const Pod& pod);
/// A critical pod any that is not; else by priority, if both have one. Source: spec "Pod admission", 8.
bool may_preempt(const Pod& preemptor, const Pod& victim);
const PodCondition* find_condition(const std::vector<PodCondition>& conditions, std::string_view type);

/// Gates that change the requests of a pod; both on since Kubernetes 1.34.
struct PodFeatures {
  bool pod_level_resources = true;            // spec.resources counts
  bool in_place_pod_vertical_scaling = true;  // the status of the pod and of its containers counts

  friend bool operator==(const PodFeatures&, const PodFeatures&) = default;
};

enum class QosClass { kGuaranteed, kBurstable, kBestEffort };

/// The class by cpu and memory of the pod level where there is one, else of containers and init containers. Source:
/// Kubernetes docs, "Pod Quality of Service Classes"; KEP-2837.
QosClass compute_qos(const PodSpec& spec, const PodFeatures& features = {});
/// status.qosClass if set, else computed. A class of another name counts as computed.
QosClass qos_of(const Pod& pod);
std::string_view to_string(QosClass qos);
/// nullopt: no class of that name.
std::optional<QosClass> parse_qos(std::string_view text);

/// The amounts that the scheduler and the agent reserve: max(sum of containers + sidecars, init containers in order) +
/// overhead, of the spec alone; more in pod_requests.h. Source: KEP-753, KEP-2837, vectors admission/pod_requests.
ResourceList effective_requests(const PodSpec& spec);

}  // namespace spillway::api
