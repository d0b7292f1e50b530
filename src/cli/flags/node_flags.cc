#include "api/json/json.h"
#include "api/text/duration.h"
#include "api/text/quantity.h"
#include "cli/flags/checks.h"
#include "cli/flags/flags.h"
#include "cli/flags/help_text.h"
#include "policy/eviction/memory_estimate.h"
#include "policy/eviction/threshold_parse.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::cli {
namespace {

using ParseSetting = std::function<Result<api::Json>(const std::string&)>;

/// A flag that names one member of the KubeletConfiguration.
void add_setting(CLI::App& app, NodeConfigArgs& config, const std::string& flag, const std::string& key,
                 const ParseSetting& parse, const std::string& help, const std::string& type,
                 const std::string& shown_default) {
  add_taken(
      app, flag,
      [&config, parse, key](const std::string& text) -> Outcome {
        SPILLWAY_TRY(value, parse(text));
        config.flags[key] = std::move(value);
        return {};
      },
      help, type, shown_default);
}

Result<std::vector<std::pair<std::string, std::string>>> parse_labels(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> labels;
  for (const std::string& pair : CLI::detail::split(text, ',')) {
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return make_error(ErrorCode::kInvalid, "expected key=value[,key=value...], got \"{}\"", pair);
    }
    labels.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return labels;
}

Result<api::Json> integer_setting(const std::string& text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return make_error(ErrorCode::kInvalid, "expected a whole number, got \"{}\"", text);
  }
  return api::Json(std::int64_t{value});
}

Result<api::Json> count_setting(const std::string& text) {
  SPILLWAY_TRY(value, integer_setting(text));
  if (*value.if_int64() <= 0) return make_error(ErrorCode::kInvalid, "must be positive, got {}", text);
  return value;
}

Result<api::Json> duration_setting(const std::string& text) {
  SPILLWAY_TRY(duration, parse_positive_duration(text));
  return api::Json(api::format_duration(duration));
}

Result<api::Json> path_setting(const std::string& text) {
  if (text.empty()) return make_error(ErrorCode::kInvalid, "expected a path");
  return api::Json(text);
}

/// "signal<value,…" or "signal=value,…" as a mapping.
auto pairs_setting(eviction::PairSyntax syntax) {
  return [syntax](const std::string& text) -> Result<api::Json> {
    eviction::SignalFlag pairs(syntax, {});
    if (!pairs.add(text)) {
      const bool less = syntax == eviction::PairSyntax::kLessThan;
      return make_error(ErrorCode::kInvalid, "expected {}, got \"{}\"",
                        less ? "SIGNAL<VALUE, for example 'memory.available<100Mi'" : "NAME=VALUE,...", text);
    }
    api::Json map = api::Json::object();
    for (const auto& [signal, value] : pairs.entries()) map[signal] = value;
    return map;
  };
}

Result<api::Json> resources_setting(const std::string& text) {
  SPILLWAY_TRY(map, pairs_setting(eviction::PairSyntax::kEquals)(text));
  for (const auto& [resource, amount] : *map.if_object()) {
    if (!api::parse_quantity(*amount.if_string())) {
      return make_error(ErrorCode::kInvalid, "{}: expected a quantity, got {}", resource, api::to_text(amount));
    }
  }
  return map;
}

Result<api::Json> list_setting(const std::string& text) {
  api::Json list = api::Json::array();
  for (const std::string& each : CLI::detail::split(text, ',')) list.if_array()->push_back(each);
  return list;
}

Result<api::Json> switch_setting(const std::string& text) {
  if (text == "true") return api::Json(true);
  if (text == "false") return api::Json(false);
  return make_error(ErrorCode::kInvalid, "expected true or false, got \"{}\"", text);
}

/// "key=value:effect" or "key:effect".
Result<api::Json> parse_taint(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || text.find(':', colon + 1) != std::string::npos) {
    return make_error(ErrorCode::kInvalid, "invalid taint spec: {}", text);
  }
  const std::string pair = text.substr(0, colon);
  const std::size_t equals = pair.find('=');
  api::Json taint = api::Json::object({{"effect", text.substr(colon + 1)}, {"key", pair.substr(0, equals)}});
  if (equals != std::string::npos) taint["value"] = pair.substr(equals + 1);
  return taint;
}

/// One effect of a key may be given once.
Result<api::Json> taints_setting(const std::string& text) {
  api::Json list = api::Json::array();
  std::set<std::pair<std::string, std::string>> seen;
  for (const std::string& each : CLI::detail::split(text, ',')) {
    SPILLWAY_TRY(taint, parse_taint(each));
    if (!seen.emplace(taint.string_at({"key"}), taint.string_at({"effect"})).second) {
      return make_error(ErrorCode::kInvalid, "duplicated taints with the same key and effect: {}", each);
    }
    list.if_array()->push_back(std::move(taint));
  }
  return list;
}

Result<api::Json> text_setting(const std::string& text) {
  return api::Json(text);
}

/// "0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=2Gi".
Result<api::Json> reserved_memory_setting(const std::string& text) {
  api::Json list = api::Json::array();
  for (const std::string& node : CLI::detail::split(text, ';')) {
    const std::size_t colon = node.find(':');
    if (colon == std::string::npos) {
      return make_error(ErrorCode::kInvalid, "expected NODE:TYPE=QUANTITY, got \"{}\"", node);
    }
    SPILLWAY_TRY(number, integer_setting(node.substr(0, colon)));
    SPILLWAY_TRY(limits, resources_setting(node.substr(colon + 1)));
    list.if_array()->push_back(api::Json::object({{"numaNode", number}, {"limits", limits}}));
  }
  return list;
}

void add_hard_thresholds(CLI::App& app, NodeConfigArgs& config) {
  add_setting(app, config, "--eviction-hard", "evictionHard", pairs_setting(eviction::PairSyntax::kLessThan),
              "Hard thresholds, e.g. memory.available<100Mi; naming one drops all defaults", "SIGNAL<VALUE,...", "");
}

void add_taints(CLI::App& app, NodeConfigArgs& config) {
  add_setting(app, config, "--register-with-taints", "registerWithTaints", taints_setting,
              "Taints the node registers with, e.g. dedicated=gpu:NoSchedule", "KEY[=VALUE]:EFFECT,...", "");
}

void add_max_pods(CLI::App& app, NodeConfigArgs& config) {
  add_setting(app, config, "--max-pods", "maxPods", count_setting, "Largest number of pods on this node", "INT", "110");
}

void add_labels(CLI::App& app, std::vector<std::pair<std::string, std::string>>& labels) {
  add_parsed(app, "--node-labels", labels, parse_labels, "Labels the node registers with", "KEY=VALUE,...", "");
}

void add_node_config(CLI::App& app, NodeConfigArgs& config) {
  begin_group(app, "Node");
  app.add_option("--config", config.file, "KubeletConfiguration (YAML); flags win over it")->check(CLI::ExistingFile);
  app.add_option("--config-dir", config.directory,
                 "Directory of *.conf files merged over it, in the order of their names")
      ->check(CLI::ExistingDirectory);
  app.add_flag("--strict-config", config.strict,
               "Refuse to start with unknown or repeated keys in these files, of which a kubelet only warns");
  const auto less_than = pairs_setting(eviction::PairSyntax::kLessThan);
  const auto equals = pairs_setting(eviction::PairSyntax::kEquals);
  begin_group(app, "Eviction");
  add_hard_thresholds(app, config);
  add_setting(app, config, "--eviction-soft", "evictionSoft", less_than, "Soft thresholds, e.g. memory.available<300Mi",
              "SIGNAL<VALUE,...", "");
  add_setting(app, config, "--eviction-soft-grace-period", "evictionSoftGracePeriod", equals,
              "Grace periods of soft thresholds, e.g. memory.available=1m30s", "SIGNAL=DURATION,...", "");
  add_setting(app, config, "--eviction-minimum-reclaim", "evictionMinimumReclaim", equals,
              "Free this much more than the threshold requires, e.g. memory.available=50Mi", "SIGNAL=VALUE,...", "");
  add_setting(app, config, "--eviction-pressure-transition-period", "evictionPressureTransitionPeriod",
              duration_setting, "Keep a pressure condition this long after its threshold was last met", "DURATION",
              "5m0s");
  add_setting(app, config, "--eviction-max-pod-grace-period", "evictionMaxPodGracePeriod", integer_setting,
              "Longest grace period of pods in soft evictions, in seconds", "INT", "0");
  add_setting(app, config, "--memory-relief", "memoryRelief", switch_setting,
              "Reclaim page cache from pods before one of them is evicted for memory, in the order of eviction. Pods "
              "that read it again at once are left alone. Needs memory.reclaim (cgroup version 2)",
              "true|false", "false");
  begin_group(app, "Reservations");
  add_setting(app, config, "--kube-reserved", "kubeReserved", resources_setting,
              "Resources reserved for the node's daemons, e.g. cpu=100m,memory=200Mi", "RESOURCE=QUANTITY,...", "");
  add_setting(app, config, "--system-reserved", "systemReserved", resources_setting,
              "Resources reserved for the operating system", "RESOURCE=QUANTITY,...", "");
  add_setting(app, config, "--enforce-node-allocatable", "enforceNodeAllocatable", list_setting,
              "Cgroups on which reservations are enforced: pods, system-reserved, kube-reserved, "
              "system-reserved-compressible, kube-reserved-compressible or none",
              "WHAT,...", "pods");
  add_setting(app, config, "--system-reserved-cgroup", "systemReservedCgroup", text_setting,
              "Cgroup of the operating system's daemons, e.g. /system.slice; it has to exist", "PATH", "");
  add_setting(app, config, "--kube-reserved-cgroup", "kubeReservedCgroup", text_setting,
              "Cgroup of the node's daemons, e.g. /runtime.slice; it has to exist", "PATH", "");
  begin_group(app, "Registration and status");
  add_setting(app, config, "--register-node", "registerNode", switch_setting,
              "Create the Node object; false: report the status of a Node that exists already", "true|false", "true");
  add_taints(app, config);
  add_setting(app, config, "--node-status-update-frequency", "nodeStatusUpdateFrequency", duration_setting,
              "Interval at which the node status is computed", "DURATION", "10s");
  add_setting(app, config, "--node-status-report-frequency", "nodeStatusReportFrequency", duration_setting,
              "Interval at which an unchanged node status is reported", "DURATION", "5m0s");
  add_setting(app, config, "--node-status-max-images", "nodeStatusMaxImages", integer_setting,
              "Images listed in the node status; -1: all", "INT", "50");
  add_setting(app, config, "--node-lease-duration-seconds", "nodeLeaseDurationSeconds", count_setting,
              "Duration of the node's lease in seconds; it is renewed after a quarter of it", "INT", "40");
  begin_group(app, "CPUs, memory and topology");
  add_setting(app, config, "--topology-manager-policy", "topologyManagerPolicy", text_setting,
              "Topology manager policy: none, best-effort, restricted or single-numa-node", "POLICY", "none");
  add_setting(app, config, "--topology-manager-scope", "topologyManagerScope", text_setting,
              "Unit that the topology manager aligns: container or pod", "SCOPE", "container");
  add_setting(app, config, "--topology-manager-policy-options", "topologyManagerPolicyOptions", equals,
              "Options of the topology manager, e.g. prefer-closest-numa-nodes=true", "OPTION=VALUE,...", "");
  add_setting(app, config, "--cpu-manager-policy", "cpuManagerPolicy", text_setting,
              "CPU manager policy: none or static", "POLICY", "none");
  add_setting(app, config, "--cpu-manager-policy-options", "cpuManagerPolicyOptions", equals,
              "Options of the CPU manager policy, e.g. full-pcpus-only=true", "OPTION=VALUE,...", "");
  add_setting(app, config, "--reserved-cpus", "reservedSystemCPUs", text_setting,
              "CPUs reserved for daemons, e.g. 0-1; replaces the reserved amount of cpu", "CPUS", "");
  add_setting(app, config, "--memory-manager-policy", "memoryManagerPolicy", text_setting,
              "Memory manager policy: None or Static", "POLICY", "None");
  add_setting(app, config, "--reserved-memory", "reservedMemory", reserved_memory_setting,
              "Memory reserved on each NUMA node, e.g. 0:memory=1Gi;1:memory=2Gi", "NODE:TYPE=QUANTITY[,...][;...]",
              "");
  begin_group(app, "Pods");
  add_max_pods(app, config);
  add_setting(app, config, "--container-runtime-endpoint", "containerRuntimeEndpoint", text_setting,
              "CRI socket of the container runtime, e.g. unix:///run/containerd/containerd.sock. Without one, pods run "
              "as processes of this machine. With --companion it reports disk usage only",
              "SOCKET", "");
  add_setting(app, config, "--pod-manifest-path", "staticPodPath", path_setting,
              "File or directory of static pods, which this node runs independently of the API server", "PATH", "");
  add_setting(app, config, "--file-check-frequency", "fileCheckFrequency", duration_setting,
              "Interval at which static pod files are read again", "DURATION", "20s");
  add_setting(
      app, config, "--sync-frequency", "syncFrequency", duration_setting,
      "Interval at which ConfigMaps and Secrets in volumes are refreshed, plus a random part of up to half of it",
      "DURATION", "1m0s");
  add_setting(app, config, "--pods-per-core", "podsPerCore", integer_setting,
              "Largest number of pods per core; 0: no such limit", "INT", "0");
}

Result<eviction::MemoryEstimator> parse_estimator(const std::string& text) {
  if (const auto by = eviction::parse_memory_estimator(text)) return *by;
  return make_error(ErrorCode::kInvalid, "expected workingset, available or workingset+swap, got \"{}\"", text);
}

Result<Bytes> parse_recording_size(const std::string& text) {
  if (const auto none = api::parse_quantity(text); none && none->sign() == 0) return Bytes{};
  SPILLWAY_TRY(size, parse_bytes(text));
  if (size < mebibytes(1) || size > gibibytes(1)) {
    return make_error(ErrorCode::kInvalid, "expected 0, or 1Mi to 1Gi, got \"{}\"", text);
  }
  return size;
}

void add_memory_watch(CLI::App& app, eviction::MemoryWatch& watch) {
  begin_group(app, "Eviction");
  add_parsed(app, "--memory-estimator", watch.estimator, parse_estimator,
             "Meaning of memory.available. workingset: memory minus working set, as in the kubelet. available: the "
             "kernel's MemAvailable, in which page cache counts as free. workingset+swap: memory and swap minus "
             "working set. Metrics and explain show all three",
             "ESTIMATOR", "workingset");
  add_parsed(app, "--mem-available-floor", watch.mem_available_floor, parse_optional_bytes,
             "Guard: treat less MemAvailable than this as a met hard threshold, whatever memory.available is. The "
             "estimator may count memory that cannot be allocated",
             "QUANTITY", "off");
  app.add_flag_callback(
      "--memory-brake", [&watch] { watch.brake = eviction::Brake::kOn; },
      "Brake: slow all pods down (memory.high) shortly before a hard memory threshold, ahead of the OOM killer. It "
      "also slows pods with much page cache. Needs cgroup version 2");
}

}  // namespace

void add_recording_size(CLI::App& app, Bytes& size, const std::string& what) {
  add_parsed(app, "--recording-max-size", size, parse_recording_size,
             "Largest size of the recording of " + what + "; 0: no recording", "QUANTITY", "64Mi");
}

void add_node(CLI::App& app, NodeArgs& args) {
  add_node_config(app, args.config);
  begin_group(app, "Node");
  add_labels(app, args.labels);
  app.add_flag("--register-schedulable,!--no-register-schedulable", args.register_schedulable,
               "Register the node as schedulable")
      ->default_str("true");
  add_parsed(app, "--node-memory", args.memory, parse_optional_bytes,
             "Limit the node to a cgroup with this much memory instead of the whole machine", "QUANTITY", "");
  app.add_option("--node-pids", args.pids_max, "Limit of processes in the node's cgroup")->check(above_zero());
  add_memory_watch(app, args.memory_watch);
  begin_group(app, "Node");
  add_recording_size(app, args.recording_max, "the inputs of evictions");
  app.add_option("--node-status-compat", args.status_compat,
                 "Report as agents up to this version: condition OutOfDisk, no lease, a patch at every update")
      ->check(one_of({"v1.12"}));
  app.add_option("--process-isolation", args.process_isolation,
                 "Isolation of pods that are processes. namespaces: user, mount, pid, ipc and cgroup namespaces, "
                 "without rights on this machine. none: every pod is root on this machine and sees everything")
      ->check(one_of({"namespaces", "none"}))
      ->capture_default_str();
  app.add_option("--state-dir", args.state_dir, "Directory of the nodes' state: pod logs, volumes, journal")
      ->type_name("DIR")
      ->default_str("/var/lib/spillway/nodes");
  app.add_option(
         "--image-credential-provider-config", args.credential_plugin_file,
         "File (CredentialProviderConfig) that lists credential plug-ins: programs with passwords of registries")
      ->check(CLI::ExistingFile);
  app.add_option("--image-credential-provider-bin-dir", args.credential_plugin_dir,
                 "Directory of the credential plug-ins; each of the two flags needs the other")
      ->check(CLI::ExistingDirectory);
  app.add_option("--cni-bin-dir", args.cni_bin_dir, "Directory of CNI plug-ins, for pods that are processes")
      ->type_name("DIR")
      ->default_str("/opt/cni/bin, /usr/lib/cni");
}

void add_hollow_node(CLI::App& app, HollowCommand& command) {
  add_labels(app, command.labels);
  add_taints(app, command.config);
  add_max_pods(app, command.config);
  add_hard_thresholds(app, command.config);
}

}  // namespace spillway::cli
