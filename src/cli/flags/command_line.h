// The command line of the one binary: parse → typed arguments. Nothing is opened, read or started here.
// Thread: main. Errors: one line on standard error with the flag and a suggestion, exit code 2.
#pragma once

#include "api/json/json.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "policy/addresses/node_range_flags.h"
#include "policy/autoscaling/settings.h"
#include "policy/eviction/memory_watch.h"
#include "telemetry/log.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace spillway::cli {

/// Exit codes, with the same meaning in every command: the table of `spillway help exit-codes`.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;    // not done: no answer, no permission, or an error while it ran
inline constexpr int kExitUsage = 2;      // the command line is wrong, or a file that it names is wrong or missing
inline constexpr int kExitNegative = 3;   // done, and the answer is negative: a problem, a difference, no such object
inline constexpr int kExitWarnings = 4;   // done, with warnings only
inline constexpr int kExitInvariant = 5;  // a property of the program itself was violated
inline constexpr int kExitSignalBase = 128;  // plus the number of the signal that ended the command

struct LogArgs {
  telemetry::Level level = telemetry::Level::kInfo;
  telemetry::LogFormat format = telemetry::LogFormat::kLogfmt;
  bool given = false;  // one of the two flags was on the command line
};

/// The destination of spans, and the requests that have some.
struct TraceArgs {
  std::string collector;             // URL without /v1/traces; empty: nothing is traced
  std::uint32_t requests_ppm = 100;  // out of a million requests that no client has asked to trace
};

/// The sources of a node's KubeletConfiguration. Flags win over files, files of the directory over the file.
struct NodeConfigArgs {
  std::string file;                       // empty: none
  std::string directory;                  // with *.conf files, merged in the order of their names; empty: none
  bool strict = false;                    // unknown and repeated keys are errors
  api::Json flags = api::Json::object();  // members of a KubeletConfiguration that flags named
};

/// Measurement, reports and evictions of a node. Flag names are the kubelet's.
struct NodeArgs {
  NodeConfigArgs config;
  std::vector<std::pair<std::string, std::string>> labels;
  bool register_schedulable = true;
  std::optional<Bytes> memory;  // the slice's; nullopt: the whole machine
  std::optional<std::int64_t> pids_max;
  eviction::MemoryWatch memory_watch;
  Bytes recording_max = mebibytes(64);  // bytes of one node's recording; 0: none
  std::string state_dir;
  std::string process_isolation = "namespaces";  // "none": pods are processes like any other
  std::string status_compat;                     // "v1.12": as agents up to it report; empty: as today's
  std::string cloud_provider;                    // "external", or empty
  std::string credential_plugin_file;  // a CredentialProviderConfig; with credential_plugin_dir, or both empty
  std::string credential_plugin_dir;
  std::string cni_bin_dir;  // holds network plug-ins; empty: /opt/cni/bin, /usr/lib/cni
};

/// Brakes of the lifecycle controllers; empty or absent: off. Limits are still text: policy/lifecycle parses them.
struct BrakeArgs {
  std::string limit_not_ready;
  std::string limit_taints;
  std::string limit_deletions;
  std::string limit_node_deletions;
  std::string full_disruption = "normal";  // "slow", "hold"
  double stall_share = 0;                  // 0: off
  Duration stall_max = minutes(2);
  Duration watch_age_max{};
  Duration clock_jump_max{};
  Duration storm_cool_down{};
  std::string hold_config_map = "kube-system/spillway-hold";
  bool respect_budgets = false;
  bool wait_for_replacement = false;
  bool replace_before_deletion = false;
  bool eviction_backoff = false;
};

/// The server of a process of controllers, or of the scheduler: health, metrics and the pages for `spillway zones`.
/// Flag names are kube-controller-manager's.
struct ProcessServingArgs {
  std::string bind_address = "127.0.0.1";
  std::uint16_t secure_port = 0;  // 0: any free port
  std::string advertise_address;  // empty: bind_address, or the host name where that is any address
  std::string tls_cert_file;      // with tls_private_key_file; both empty: a certificate of its own making
  std::string tls_private_key_file;
};

/// A flag of upstream's that was given and changes nothing here.
struct FlagWithoutEffect {
  std::string flag;
  std::string why;
};

/// Flag names are kube-controller-manager's.
struct ControllerArgs {
  Duration node_monitor_period = seconds(5);
  std::optional<Duration> node_monitor_grace_period;  // absent: grace_period_of()
  Duration node_startup_grace_period = seconds(60);
  double node_eviction_rate = 0.1;
  double secondary_node_eviction_rate = 0.01;
  std::int32_t large_cluster_size_threshold = 50;
  double unhealthy_zone_threshold = 0.55;
  std::int32_t terminated_pod_gc_threshold = 12500;
  bool terminated_pod_gc_fair = false;
  std::optional<Duration> pod_eviction_timeout;
  autoscaling::Settings autoscaling;
  std::string cloud_instance_check_command;  // queried for nodes without a machine; empty: none is
  Duration cloud_instance_check_timeout = seconds(10);
  std::string compat;         // "v1.29"; empty: Spillway's own behaviour
  std::string eviction_mode;  // "taint" or "timeout"; empty: eviction_mode_of()
  bool taint_manager = true;  // NoExecute taints, by whatever controller or user, evict pods
  BrakeArgs brakes;
  bool allocate_node_cidrs = false;
  addresses::NodeRangeFlags node_ranges;  // counts with allocate_node_cidrs only
};

// The effective values: as given, else those of the line of `compat`.
Duration grace_period_of(const ControllerArgs& args);
std::string eviction_mode_of(const ControllerArgs& args);
/// Flags that were given and change nothing beside the others.
std::vector<FlagWithoutEffect> flags_without_effect(const ControllerArgs& args);

struct LeaderElectionArgs {
  bool enabled = true;
  Duration lease_duration = seconds(15);
  Duration renew_deadline = seconds(10);
  Duration retry_period = seconds(2);
  std::string resource_name = "spillway-controller";
  std::string resource_namespace = "kube-system";
};

/// The lease of kube-scheduler: of all that would place the same pods one does.
inline LeaderElectionArgs scheduler_election() {
  LeaderElectionArgs args;
  args.resource_name = "kube-scheduler";
  return args;
}

/// Resources in an etcd of their own.
struct EtcdOverride {
  std::string resource;  // "GROUP/RESOURCE", "/events"
  std::vector<std::string> servers;
};

/// A cluster of etcd in place of the embedded store.
struct EtcdArgs {
  std::vector<std::string> servers;  // URLs; empty: the embedded store
  std::string prefix = "/registry";
  std::string ca_file;           // empty: the system's authorities
  std::string certificate_file;  // empty: the client shows none
  std::string key_file;
  std::string username;       // empty: none
  std::string password_file;  // its first line is the password
  bool insecure = false;      // plain HTTP to other machines
  std::int64_t lease_reuse_seconds = 60;
  std::vector<EtcdOverride> overrides;          // an API server's
  std::optional<Duration> compaction_interval;  // time for which history is kept; nullopt: the default; 0: all of it
};

/// The audit log of the API server. Sizes and counts of 0 are as described.
struct AuditArgs {
  std::string policy_file;        // empty: the default policy
  std::string log_path;           // empty: no audit log; "-": standard output
  std::int32_t max_age_days = 0;  // for renamed logs; 0: for ever
  std::int32_t max_backups = 0;   // renamed logs that are kept; 0: all
  std::int32_t max_size_mb = 0;   // before the log is renamed, in 2^20 bytes; 0: 100
  bool compress = false;          // renamed logs
  std::string format = "json";
  std::string mode = "batch";  // or blocking, blocking-strict
  bool truncates = false;
  std::int64_t truncated_event_bytes = 102'400;
  std::int64_t truncated_batch_bytes = 10'485'760;
};

/// Flow control: priorities of requests, and their concurrency.
struct FlowArgs {
  bool enabled = true;
  std::string config_file;  // empty: the built-in flow schemas and priority levels
  std::int32_t requests_max = 400;
  std::int32_t mutating_requests_max = 200;  // besides
};

struct ServingArgs {
  std::string data_dir;  // empty: the platform's default
  EtcdArgs etcd;
  std::string bind_address = "127.0.0.1";
  std::string advertise_address;              // the address for pods; empty: follows from bind_address
  std::uint16_t port = 6443;                  // 0: any free port
  std::vector<std::string> names_to_clients;  // names and addresses of the serving certificate, besides its own
  std::string write_kubeconfig;               // empty: DATA_DIR/kubeconfig
  std::string token_auth_file;
  std::string token_signing_key_file;        // signs service accounts' tokens; empty: DATA_DIR/pki/sa.key
  std::vector<std::string> token_key_files;  // further keys whose tokens are accepted
  std::string client_ca_file;                // accepted client certificate authorities, besides ours; empty: none
  std::string tls_certificate_file;          // certificate shown to clients; empty: one that the server makes
  std::string tls_key_file;                  // the key of that certificate
  bool insecure_http = false;
  bool http2_off = false;
  std::optional<int> http_threads;  // serving threads, 1 to 64; nullopt: half as many as processors, 1 to 4
  double goaway_chance = 0;         // for a request over HTTP/2, 0 to 0.02
  /// Signed the serving certificates of agents that ours has not signed; empty: none besides.
  std::string kubelet_certificate_authority;
  bool kubelet_insecure_tls = false;
  bool bootstrap_tokens = false;           // are accepted
  std::optional<Duration> token_life_max;  // for service accounts' tokens; nullopt: as long as requested
  std::vector<std::string> admission_off;  // names of admission plug-ins
  std::string admission_config_file;       // configuration of admission plug-ins; empty: none
  AuditArgs audit;
  FlowArgs flow;
  std::string storage_media_type;    // empty: the form of the first stored objects
  bool drop_unknown_fields = false;  // removed from stored values when they are written
  Duration event_ttl = hours(1);
  bool what_if = true;  // futures are played for the page at /ui/
};

/// A numeric address and a port.
struct ListenPlace {
  std::string address;
  std::uint16_t port = 0;
};

/// The DNS server of a cluster.
struct DnsArgs {
  std::string cluster_domain = "cluster.local";
  std::vector<ListenPlace> listen;    // empty: the command's default
  std::vector<ListenPlace> upstream;  // servers for other names; empty: those of resolv_conf
  std::string resolv_conf = "/etc/resolv.conf";
  std::vector<std::string> allow_from;  // ranges of clients, beside this machine
  std::string pod_names = "insecure";   // or verified, disabled
  std::uint32_t ttl_seconds = 30;
  float client_rate = 1000;  // queries per second of one address
};

/// The runtime of the pods of `up`.
struct RuntimeArgs {
  std::string wanted = "auto";  // or containerd, process, or the path of a socket
  std::string containerd;       // the program; empty: found on PATH
  std::string runc;             // the program; empty: found on PATH
};

struct UpCommand {
  ServingArgs serving;
  NodeArgs node;
  ControllerArgs controller;
  std::int32_t nodes = 1;
  std::int32_t process_nodes = 0;  // further nodes, whose pods are processes
  std::string node_name;           // name of the first node, prefix of several; empty: the host name
  bool remove_missing_nodes = false;
  std::string scheduler_config;                   // a KubeSchedulerConfiguration; empty: none
  std::string pods_at_stop = "end";               // or leave
  std::string kubernetes_service = "api-server";  // or cluster-ip
  std::string pod_network = "auto";               // or on, off
  std::string dns_mode = "auto";                  // or on, off
  std::string storage = "auto";                   // or on, off
  std::string manifests;                          // a folder of objects to apply; empty: none
  DnsArgs dns;
  RuntimeArgs runtime;
  bool print_config = false;
  std::string proxy = "auto";          // on, off
  std::string load_balancer = "auto";  // or off
  TraceArgs trace;
};

struct ApiserverCommand {
  ServingArgs serving;
  TraceArgs trace;
};

/// An eviction manager beside another kubelet (agent/companion).
struct CompanionArgs {
  bool enabled = false;
  bool shadow = false;
  std::string kubelet = "https://127.0.0.1:10250";
  std::string kubelet_authority;  // a PEM file; empty: certificates of a kubelet on loopback are not verified
  bool pods_from_kubelet = false;
  Duration shadow_window = minutes(1);
  std::string pages_address = "127.0.0.1:10270";  // address of its own pages; empty: none
  std::string root_dir = "/var/lib/kubelet";      // the kubelet's

  friend bool operator==(const CompanionArgs&, const CompanionArgs&) = default;
};

/// The API server and the user to act as. Empty: from the kubeconfig.
struct ClusterArgs {
  std::string kubeconfig;  // a file; empty: see apps/view/remote.h
  std::string context;
  std::string cluster;
  std::string user;
};

struct AgentCommand {
  ClusterArgs api;  // without a kubeconfig only if print_config
  bool print_config = false;
  /// The kubeconfig for requesting the certificate of `api`; empty: it has one.
  std::string bootstrap_kubeconfig;
  std::string node_name;
  std::vector<std::string>
      node_ips;  // at most two, that the node reports; it serves on the first; empty: the machine's
  std::optional<std::uint16_t> port;              // 0: any free port; nullopt: the configuration's
  std::string pods_at_stop = "leave";             // or end
  std::string kubernetes_service = "cluster-ip";  // or api-server
  std::string cni_conf_dir;                       // configures the network of pods; empty: none
  NodeArgs node;
  CompanionArgs companion;
  TraceArgs trace;
  std::vector<FlagWithoutEffect> without_effect;
};

struct ControllerCommand {
  ClusterArgs api;               // without a kubeconfig only if print_config
  std::string config;            // a KubeControllerManagerConfiguration; its flags precede those given
  std::string config_directory;  // directory of *.conf files, whose flags follow those of `config`; empty: none
  bool print_config = false;
  double kube_api_qps = 20;  // writes per second
  std::int32_t kube_api_burst = 30;
  std::vector<FlagWithoutEffect> without_effect;
  ProcessServingArgs serving;
  LeaderElectionArgs leader_election;
  std::string controllers = "*";
  bool shadow = false;
  std::string recording_dir;            // the folder above its recording; empty: none
  Bytes recording_max = mebibytes(64);  // bytes of its recording; 0: none
  bool beside_stock = false;  // the stock controllers of the same names are switched off, though their process runs
  ControllerArgs controller;
};

/// Limits of the deletions of a preemption; as in BrakeArgs.
struct PreemptionArgs {
  bool respect_budgets = false;
  std::string limit_deletions;  // empty: none
};

inline constexpr std::uint16_t kSchedulerPort = 10259;

struct SchedulerCommand {
  ClusterArgs api;
  std::string config;  // a KubeSchedulerConfiguration; empty: none
  // file to which the effective configuration is written; empty: none
  std::string write_config_to;
  ProcessServingArgs serving{.secure_port = kSchedulerPort};  // kube-scheduler's port by default
  LeaderElectionArgs leader_election = scheduler_election();  // without a file
  Duration unschedulable_max = minutes(5);  // after that a refused pod is tried again, even without a change
  std::vector<FlagWithoutEffect> without_effect;
  bool conditions_literally = false;  // predicates check the conditions of nodes, not their taints
  PreemptionArgs preemption;
};

inline constexpr std::uint16_t kDnsPort = 53;
inline constexpr std::uint16_t kDnsPagesPort = 10271;

struct DnsCommand {
  ClusterArgs api;
  DnsArgs dns;
  ProcessServingArgs serving{.secure_port = kDnsPagesPort};
};

/// Flag names are kube-proxy's where it has them.
struct ProxyCommand {
  ClusterArgs api;
  std::string hostname_override;  // empty: the host name
  std::string bind_address = "0.0.0.0";
  std::vector<std::string> cluster_cidrs;
  std::string detect_local_mode = "ClusterCIDR";
  std::string pod_bridge_interface;
  std::string pod_interface_name_prefix;
  std::vector<std::string> node_port_addresses;  // empty: primary
  std::vector<std::string> service_cidrs;
  bool masquerade_all = false;
  std::int32_t masquerade_bit = 14;
  Duration sync_period = seconds(30);
  Duration min_sync_period = seconds(1);
  std::string healthz_bind_address = "0.0.0.0:10256";    // empty: none
  std::string metrics_bind_address = "127.0.0.1:10249";  // empty: none
  bool cleanup = false;
  std::vector<FlagWithoutEffect> without_effect;
};

struct DemoCommand {
  bool keep = false;  // keep the temporary directory, so that it can be inspected
};

/// Nodes without machines.
struct HollowCommand {
  ClusterArgs api;
  std::string scenario;               // a file, or one that comes with the program; empty: none
  std::optional<std::int64_t> nodes;  // nullopt: the scenario's, else 10
  std::optional<std::int64_t> zones;  // nullopt: the scenario's, else 1
  std::string name_prefix = "hollow";
  std::int64_t first_number = 0;
  double nodes_per_second = 20;
  std::optional<std::int64_t> cpus;  // per node; nullopt: the scenario's, else 4
  std::optional<Bytes> memory;       // nullopt: the scenario's, else 16Gi
  std::optional<Bytes> disk;         // nullopt: the scenario's, else 100Gi
  std::vector<std::pair<std::string, std::string>> labels;
  NodeConfigArgs config;
  Duration observe_interval = seconds(10);
  std::optional<std::uint64_t> seed;  // nullopt: another one each time
  bool delete_nodes = false;
};

/// Ends the pods that nodes with state below these directories have left running.
struct EndPodsCommand {
  std::vector<std::string> directories;
};

/// Options of a process that takes memory and ends by itself.
struct StressCommand {
  Bytes memory;
  Bytes rate_per_second;  // zero: as fast as possible
  Duration hold = minutes(10);
};

/// kWide: kText with the columns that a table leaves out otherwise.
enum class OutputFormat { kText, kWide, kJson, kYaml };

/// True if an answer in this format is one document, for programs.
constexpr bool is_document(OutputFormat format) {
  return format == OutputFormat::kJson || format == OutputFormat::kYaml;
}

/// The program that a KubeletConfiguration is meant for.
enum class LintedProgram { kAgent, kKubelet };

/// Two versions 1.`older` and 1.`newer` of Kubernetes.
struct VersionStep {
  int older = 0;
  int newer = 0;
};

/// Checks the effect of a KubeletConfiguration on a machine. Absent sizes: this machine's.
struct LintCommand {
  std::vector<std::string> files;  // files, each checked on its own; "-": standard input
  LintedProgram program = LintedProgram::kAgent;
  std::optional<VersionStep> versions;  // present: report the changes between them in place of the effects
  std::vector<std::string> flag_files;  // files with flags of the kubelet, for the same report
  std::optional<Bytes> memory;
  std::optional<Bytes> disk;
  OutputFormat output = OutputFormat::kText;
};

/// The means to find the leading controller.
struct ControllerTargetArgs {
  ClusterArgs api;
  std::string controller;                                 // its URL; empty: read from the API server, then the lease
  std::string lease = "kube-system/spillway-controller";  // NAMESPACE/NAME
};

enum class Colour { kAuto, kAlways, kNever };

/// The decision to explain: about a pod, by a node, or the last of all.
struct ExplainCommand {
  /// kOverview: everything that needs a look.
  enum class About { kOverview, kPod, kNode, kDeployment, kWorkload, kLast };

  About about = About::kOverview;
  bool last = false;       // the flag was given
  std::string name;        // name of the pod, node or workload
  std::string resource;    // the workload's resource with kWorkload: "replicasets", "jobs"
  std::string name_space;  // the pod's or workload's; empty: the context's, or default
  ControllerTargetArgs target;
  std::optional<std::string> journal;  // a journal file in place of the cluster
  std::string node;                    // node that is queried alone
  std::string scheduler_config;        // a KubeSchedulerConfiguration file; empty: the default profile
  OutputFormat output = OutputFormat::kText;
  Colour colour = Colour::kAuto;
};

/// Options of fetching a recording of a node or a controller.
struct RecordCommand {
  enum class Of { kNode, kController };

  Of of = Of::kNode;
  std::string node;       // name of the node; empty: `directory` is used
  std::string directory;  // a directory of this machine; empty: the recording is fetched
  ControllerTargetArgs target;
  std::string kept;   // a copy; empty: the ring
  std::string file;   // file to be written
  bool list = false;  // list the saved copies only
};

/// Replays a recording.
struct ReplayCommand {
  std::string file;
  std::string config;  // empty: the recorded configuration; of a controller: members of config: of a scenario
  OutputFormat output = OutputFormat::kText;
};

/// Finds problems of this machine, or of a cluster.
struct DoctorCommand {
  std::string config;    // a KubeletConfiguration; empty: none
  std::string data_dir;  // an API server's, on this machine; empty: the default
  std::uint16_t port = 6443;
  std::uint16_t node_port = 10250;
  ClusterArgs api;
  OutputFormat output = OutputFormat::kText;
  Colour colour = Colour::kAuto;
};

/// The distance of nodes to evictions, and the next victims.
struct TopCommand {
  enum class Sort { kNear, kName, kMemory };

  std::string node;      // empty: all nodes
  std::string selector;  // label selector for nodes; empty: all of them
  Sort sort = Sort::kNear;
  bool watch = false;
  Duration interval = seconds(2);  // time between the end of one refresh and the next
  ClusterArgs api;
  OutputFormat output = OutputFormat::kText;
  Colour colour = Colour::kAuto;
};

/// Shows decisions as they are made. Empty members: no restriction.
struct WatchCommand {
  std::string node;
  std::string name_space;
  std::string pod;
  std::vector<std::string> reasons;
  Duration since{};  // decisions of that time before the start are shown first
  ControllerTargetArgs target;
  OutputFormat output = OutputFormat::kText;
  Colour colour = Colour::kAuto;
};

/// Shows the state of a cluster's zones.
struct ZonesCommand {
  ControllerTargetArgs target;
  OutputFormat output = OutputFormat::kText;
  Colour colour = Colour::kAuto;
};

/// Serves the dashboard of a cluster on this machine.
struct DashboardCommand {
  ClusterArgs api;
  std::string bind_address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one
  bool what_if = true;     // allow simulations of the cluster
};

/// Stops and resumes the lifecycle controllers by hand.
struct HoldCommand {
  enum class Act { kHold, kResume };

  Act act = Act::kHold;
  ClusterArgs api;
  std::optional<std::string> zone;  // nullopt: everything; "-": the nodes without zone labels
  std::string why;
  std::string config_map = "kube-system/spillway-hold";
};

struct SimulateCommand {
  std::vector<std::string> scenarios;  // files, or names of built-in ones; "all": all built-in ones
  std::optional<std::uint64_t> seed;   // nullopt: the file's, else 1
  std::optional<std::int64_t> nodes;   // for a generated cluster, in place of the file's
  std::optional<std::int64_t> zones;
  std::optional<bool> brakes;
  bool compare = false;  // the two scenarios
  std::string config_a;  // files of configuration: one scenario under both
  std::string config_b;
  bool from_cluster = false;
  std::string from_lists;  // file of lists as API servers answer them, one a line; empty: none
  ClusterArgs api;
  OutputFormat output = OutputFormat::kText;
  std::string report;  // HTML file to write; empty: none
};

/// "1..20000", or how many: "20".
struct SeedRange {
  std::optional<std::uint64_t> first;
  std::uint64_t count = 20;
};

/// Plays scenarios under several settings and prints the cost of each.
struct AdviseCommand {
  std::vector<std::string> scenarios;         // as of SimulateCommand, and recordings
  std::vector<std::string> memory_available;  // hard thresholds to try; empty: as each scenario has it
  std::vector<std::string> system_reserved;   // quantities of memory
  std::vector<std::string> brakes;            // "on", "off"
  std::vector<std::string> configs;           // files with members of config: of a scenario
  std::uint64_t seeds = 1;                    // number of seeds for each scenario, from its own or 1 on
  bool from_cluster = false;
  ClusterArgs api;
  OutputFormat output = OutputFormat::kText;
};

struct SwarmCommand {
  SeedRange seeds;
  std::uint64_t first_seed = 1;       // unless the range has it
  std::optional<std::uint64_t> only;  // replay this one, with its log
  std::int32_t jobs = 0;              // seeds at a time; 0: one for each processor
  std::uint64_t minimise_runs = 400;  // for reducing the first failing seed; 0: not reduced
  std::string write;                  // file for the small scenario; empty: it is printed
  OutputFormat output = OutputFormat::kText;

  std::uint64_t first() const { return only.value_or(seeds.first.value_or(first_seed)); }

  std::uint64_t count() const { return only ? 1 : seeds.count; }
};

/// Maintains the embedded store of an API server, on its machine.
struct StoreCommand {
  enum class Act { kBackup, kRestore, kCheck, kDefrag, kCopy };

  Act act = Act::kCheck;
  std::string data_dir;    // empty: the platform's default
  std::string file;        // backup: to, restore: from, check: in place of the store; empty: none
  bool force = false;      // existing files may be replaced
  EtcdArgs etcd;           // copy: one of the two; check: in place of the store, if servers are named
  bool into_etcd = false;  // copy: from the embedded store
  OutputFormat output = OutputFormat::kText;
};

/// Manages the images of a container runtime on this machine.
struct ImagesCommand {
  enum class Act { kImport, kList, kPull, kPrune };

  Act act = Act::kList;
  std::string data_dir;  // the data directory of an `up`; empty: the platform's default
  std::string socket;    // another runtime's; empty: the one that this `up` has
  std::string file;      // import
  std::string name;      // import: in place of the archive's; pull
  OutputFormat output = OutputFormat::kText;
};

using Command =
    std::variant<UpCommand, ApiserverCommand, AgentCommand, ControllerCommand, SchedulerCommand, DnsCommand,
                 ProxyCommand, DemoCommand, HollowCommand, EndPodsCommand, StressCommand, LintCommand, ExplainCommand,
                 ZonesCommand, HoldCommand, SimulateCommand, AdviseCommand, SwarmCommand, StoreCommand, ImagesCommand,
                 RecordCommand, ReplayCommand, DoctorCommand, DashboardCommand, TopCommand, WatchCommand>;

struct CommandLine {
  LogArgs log;
  Command command;
};

/// The text and exit code where there is no command to run: help, version, or a mistake.
struct EarlyExit {
  std::string text;
  int exit_code = kExitUsage;
};

std::variant<CommandLine, EarlyExit> parse_command_line(int argc, const char* const* argv);

}  // namespace spillway::cli
