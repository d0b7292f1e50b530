#include "api/text/duration.h"
#include "cli/flags/checks.h"
#include "cli/flags/flags.h"
#include "cli/flags/help_text.h"
#include "policy/lifecycle/lines/kubernetes_line.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <string>

namespace spillway::cli {
namespace {

/// Zero is the default and means off.
void add_optional_brake(CLI::App& app, const std::string& flag, Duration& into, const std::string& help) {
  add_parsed(app, flag, into, parse_positive_duration, "Brake: " + help, "DURATION", "off");
}

void add_brakes(CLI::App& app, BrakeArgs& args) {
  // The form of all four flags: a limit of the cluster, then limits of each zone and of each owner.
  const auto add_limit = [&app](const char* flag, std::string& into, const char* counted) {
    app.add_option(flag, into, fmt::format("Brake: limit the number of {} within a window", counted))
        ->type_name("ACTS/DURATION[,zone=ACTS/DURATION][,owner=ACTS/DURATION]");
  };
  begin_group(app, "Brakes");
  add_limit("--limit-not-ready", args.limit_not_ready, "nodes marked not ready");
  add_limit("--limit-taints", args.limit_taints, "nodes tainted (or evicted)");
  add_limit("--limit-deletions", args.limit_deletions, "pods deleted");
  add_limit("--limit-node-deletions", args.limit_node_deletions, "nodes deleted because their machine is gone");
  app.add_option("--zone-full-disruption", args.full_disruption,
                 "Eviction rate in a fully disrupted zone: normal, slow (the secondary rate) or hold (none)")
      ->check(one_of({"normal", "slow", "hold"}))
      ->capture_default_str();
  app.add_option("--heartbeat-stall-fraction", args.stall_share,
                 "Brake: if a larger share of the nodes is late at once, hold for up to --heartbeat-stall-max; 0: off")
      ->check(between_shares(0.0, 1.0))
      ->capture_default_str();
  add_duration(app, "--heartbeat-stall-max", args.stall_max, "Hold actions at most this long after such a stall");
  add_optional_brake(app, "--watch-age-max", args.watch_age_max,
                     "hold while the watch of this process has been silent for longer");
  add_optional_brake(app, "--clock-jump-max", args.clock_jump_max,
                     "hold for a grace period after the clock jumped or this process was stopped for longer");
  add_optional_brake(app, "--storm-cool-down", args.storm_cool_down, "hold for this long after a storm has passed");
  app.add_option("--hold-config-map", args.hold_config_map,
                 "ConfigMap of `spillway hold`: the controllers leave the zones that it names alone while it exists; "
                 "empty: off")
      ->type_name("NAMESPACE/NAME")
      ->capture_default_str();
  app.add_flag("--respect-disruption-budgets", args.respect_budgets,
               "Brake: evict within PodDisruptionBudgets instead of deleting");
  app.add_flag("--wait-for-replacement", args.wait_for_replacement,
               "Brake: delete a pod only when its replacement could be placed");
  app.add_flag("--replace-before-deletion", args.replace_before_deletion,
               "Brake: as --wait-for-replacement, and create replacements first for pods of ReplicaSets on failed "
               "nodes, by priority. The old pods are deleted once the replacements run");
  app.add_flag("--eviction-backoff", args.eviction_backoff,
               "Brake: back off before replacing pods that a node evicts repeatedly, 10s to 15m, per owner and node");
}

}  // namespace

namespace {

constexpr const char* kNotHere = "this feature does not exist here";
constexpr const char* kOneByOne = "objects are synced one after the other, and their requests run concurrently";
constexpr const char* kByDelegation = "callers are authenticated and authorized with the kubeconfig's API server";
constexpr const char* kByKubeconfig = "all requests use the kubeconfig's user";

/// Flags of kube-controller-manager that are accepted and reported as without effect.
constexpr StockFlag kOtherFlags[] = {{"--authentication-kubeconfig", kByDelegation},
                                     {"--authorization-kubeconfig", kByDelegation},
                                     {"--client-ca-file", kByDelegation},
                                     {"--cluster-name", kNotHere},
                                     {"--cluster-signing-cert-file", kNotHere},
                                     {"--cluster-signing-key-file", kNotHere},
                                     {"--concurrent-cron-job-syncs", kOneByOne},
                                     {"--concurrent-daemonset-syncs", kOneByOne},
                                     {"--concurrent-deployment-syncs", kOneByOne},
                                     {"--concurrent-endpoint-syncs", kOneByOne},
                                     {"--concurrent-ephemeralvolume-syncs", kNotHere},
                                     {"--concurrent-gc-syncs", kNotHere},
                                     {"--concurrent-horizontal-pod-autoscaler-syncs", kOneByOne},
                                     {"--concurrent-job-syncs", kOneByOne},
                                     {"--concurrent-namespace-syncs", kNotHere},
                                     {"--concurrent-rc-syncs", kNotHere},
                                     {"--concurrent-replicaset-syncs", kOneByOne},
                                     {"--concurrent-resource-quota-syncs", kNotHere},
                                     {"--concurrent-service-endpoint-syncs", kOneByOne},
                                     {"--concurrent-service-syncs", kNotHere},
                                     {"--concurrent-serviceaccount-token-syncs", kNotHere},
                                     {"--concurrent-statefulset-syncs", kOneByOne},
                                     {"--concurrent-ttl-after-finished-syncs", kOneByOne},
                                     {"--concurrent-validating-admission-policy-status-syncs", kNotHere},
                                     {"--profiling", kNotHere},
                                     {"--requestheader-client-ca-file", kByDelegation},
                                     {"--root-ca-file", kNotHere},
                                     {"--service-account-private-key-file", kNotHere},
                                     {"--use-service-account-credentials", kByKubeconfig}};

/// "NAME=true,NAME=false". The gate of the eviction mode counts; other gates have no effect.
Outcome take_gates(const std::string& text, ControllerCommand& command) {
  for (const std::string& gate : CLI::detail::split(text, ',')) {
    const std::size_t equals = gate.find('=');
    const std::string value = equals == std::string::npos ? "" : gate.substr(equals + 1);
    if (equals == 0 || (value != "true" && value != "false")) {
      return make_error(ErrorCode::kInvalid, "expected NAME=true or NAME=false, got \"{}\"", gate);
    }
    if (gate.substr(0, equals) == "TaintBasedEvictions") {
      command.controller.eviction_mode = value == "true" ? "taint" : "timeout";
    } else {
      command.without_effect.push_back({"--feature-gates=" + gate, "there is no such gate"});
    }
  }
  return {};
}

lifecycle::LineDefaults defaults_of(const ControllerArgs& args) {
  return lifecycle::defaults_of(lifecycle::parse_line(args.compat));
}

}  // namespace

Duration grace_period_of(const ControllerArgs& args) {
  return args.node_monitor_grace_period.value_or(defaults_of(args).node_monitor_grace_period);
}

std::string eviction_mode_of(const ControllerArgs& args) {
  if (!args.eviction_mode.empty()) return args.eviction_mode;
  return defaults_of(args).mode == lifecycle::EvictionMode::kLegacy ? "timeout" : "taint";
}

std::vector<FlagWithoutEffect> flags_without_effect(const ControllerArgs& args) {
  if (!args.pod_eviction_timeout || eviction_mode_of(args) == "timeout") return {};
  return {{"--pod-eviction-timeout", "pods are evicted by taints and tolerations; see --eviction-mode=timeout"}};
}

void add_manager_flags(CLI::App& app, ControllerCommand& command) {
  begin_group(app, "Flags of kube-controller-manager");
  app.add_option("--kube-api-qps", command.kube_api_qps,
                 "Writes to the API server per second, all controllers together")
      ->check(above_zero())
      ->capture_default_str();
  app.add_option("--kube-api-burst", command.kube_api_burst, "Writes that may be sent at once after a pause")
      ->check(above_zero())
      ->capture_default_str();
  const auto taint_manager = [&command](const std::string& text) -> Outcome {
    if (text != "true" && text != "false") return make_error(ErrorCode::kInvalid, "expected true or false");
    command.controller.taint_manager = text == "true";
    command.controller.eviction_mode = text == "true" ? "" : "timeout";  // as the line of --compat has it
    return {};
  };
  add_taken(app, "--enable-taint-manager", taint_manager,
            "false: --eviction-mode=timeout, and NoExecute taints evict no pod", "BOOL", "true")
      ->trigger_on_parse();
  add_taken(
      app, "--feature-gates", [&command](const std::string& text) { return take_gates(text, command); },
      "TaintBasedEvictions=BOOL: --eviction-mode=taint or timeout; others have no effect", "NAME=BOOL,...", "")
      ->trigger_on_parse();
  const auto lock = [](const std::string& text) -> Outcome {
    if (text == "leases") return {};
    return make_error(ErrorCode::kInvalid, "\"{}\" is not supported; expected leases", text);
  };
  add_taken(app, "--leader-elect-resource-lock", lock, "Kind of the lock object: only leases is supported", "KIND",
            "leases");
  add_without_effect(app, kOtherFlags, command.without_effect);
}

void add_process_serving(CLI::App& app, ProcessServingArgs& args) {
  begin_group(app, "Serving");
  add_parsed(app, "--bind-address", args.bind_address, parse_address, "Address that serves health and metrics",
             "ADDRESS", args.bind_address);
  add_parsed(app, "--secure-port", args.secure_port, parse_port, "Port to listen on; 0: any free one", "PORT",
             std::to_string(args.secure_port));
  CLI::Option* certificate =
      app.add_option("--tls-cert-file", args.tls_cert_file, "PEM file: serve with this certificate")
          ->check(CLI::ExistingFile)
          ->default_str("a self-signed certificate");
  CLI::Option* key =
      app.add_option("--tls-private-key-file", args.tls_private_key_file, "PEM file: the key of --tls-cert-file")
          ->check(CLI::ExistingFile);
  certificate->needs(key);
  key->needs(certificate);
}

void add_leader_election(CLI::App& app, LeaderElectionArgs& args) {
  begin_group(app, "Leader election");
  app.add_flag("--leader-elect,!--no-leader-elect", args.enabled, "Act only while holding the lease")
      ->capture_default_str();
  add_duration(app, "--leader-elect-lease-duration", args.lease_duration,
               "Other processes take over a lease that was not renewed for this long");
  add_duration(app, "--leader-elect-renew-deadline", args.renew_deadline,
               "A leader stops acting this long after its last renewal");
  add_duration(app, "--leader-elect-retry-period", args.retry_period,
               "Interval between two attempts to get or renew the lease");
  app.add_option("--leader-elect-resource-name", args.resource_name, "Name of the Lease for the election")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--leader-elect-resource-namespace", args.resource_namespace, "Namespace of the Lease")
      ->type_name("NAME")
      ->capture_default_str();
}

void add_autoscaling(CLI::App& app, autoscaling::Settings& settings) {
  begin_group(app, "Autoscaling");
  add_duration(app, "--horizontal-pod-autoscaler-sync-period", settings.period,
               "Interval between two syncs of an autoscaler");
  app.add_option("--horizontal-pod-autoscaler-tolerance", settings.tolerance,
                 "Tolerated deviation of a metric from its target, as a share")
      ->check(not_negative())
      ->capture_default_str();
  add_parsed(app, "--horizontal-pod-autoscaler-downscale-stabilization", settings.down_stabilization,
             parse_duration_from_zero,
             "Window in which the highest recommendation counts when scaling down, for autoscalers without a window of "
             "their own",
             "DURATION", "5m0s");
  add_parsed(app, "--horizontal-pod-autoscaler-cpu-initialization-period", settings.start_periods.cpu_initialization,
             parse_duration_from_zero,
             "Period after a pod's start in which its processor usage counts only once it is ready and measured again",
             "DURATION", "5m0s");
  add_parsed(app, "--horizontal-pod-autoscaler-initial-readiness-delay", settings.start_periods.initial_readiness,
             parse_duration_from_zero, "Period after a pod's start in which readiness changes count as its first start",
             "DURATION", "30s");
}

void add_node_ranges(CLI::App& app, ControllerArgs& args) {
  begin_group(app, "Pod addresses");
  addresses::NodeRangeFlags& ranges = args.node_ranges;
  app.add_flag("--allocate-node-cidrs,!--no-allocate-node-cidrs", args.allocate_node_cidrs,
               "Give each node blocks of pod addresses of --cluster-cidr (spec.podCIDRs)")
      ->capture_default_str();
  app.add_option("--cluster-cidr", ranges.cluster_cidr, "Range of pod addresses; for two families: IPV4/N,IPV6/N")
      ->type_name("CIDR")
      ->capture_default_str();
  app.add_option("--node-cidr-mask-size", ranges.node_cidr_mask_size,
                 "Prefix of a node's block, where --cluster-cidr is one range; IPv4 24, IPv6 64 if not given")
      ->check(between(1, 128));
  app.add_option("--node-cidr-mask-size-ipv4", ranges.node_cidr_mask_size_ipv4, "Prefix of a node's IPv4 block")
      ->check(between(1, 32))
      ->default_str("24");
  app.add_option("--node-cidr-mask-size-ipv6", ranges.node_cidr_mask_size_ipv6, "Prefix of a node's IPv6 block")
      ->check(between(1, 128))
      ->default_str("64");
  app.add_option("--service-cluster-ip-range", ranges.service_cluster_ip_range,
                 "Range of Service addresses; no node gets a block in it")
      ->type_name("CIDR")
      ->capture_default_str();
}

void add_controller(CLI::App& app, ControllerArgs& args) {
  begin_group(app, "Node lifecycle");
  add_duration(app, "--node-monitor-period", args.node_monitor_period, "Period of the node health pass");
  add_parsed(app, "--node-monitor-grace-period", args.node_monitor_grace_period, parse_optional_duration,
             "Time without heartbeats after which a node is Unknown; with --compat up to v1.29 40s if not given",
             "DURATION", api::format_duration(grace_period_of(args)));
  add_duration(app, "--node-startup-grace-period", args.node_startup_grace_period,
               "As --node-monitor-grace-period, for a node that has never sent a heartbeat");
  app.add_option("--node-eviction-rate", args.node_eviction_rate, "Nodes tainted per second in a healthy zone")
      ->check(not_negative())
      ->capture_default_str();
  app.add_option("--secondary-node-eviction-rate", args.secondary_node_eviction_rate,
                 "Nodes tainted per second in a large zone that is partially down")
      ->check(not_negative())
      ->capture_default_str();
  app.add_option("--large-cluster-size-threshold", args.large_cluster_size_threshold,
                 "Number of nodes above which a zone is large")
      ->check(not_negative())
      ->capture_default_str();
  app.add_option("--unhealthy-zone-threshold", args.unhealthy_zone_threshold,
                 "Share of unhealthy nodes that makes a zone partially down")
      ->check(between_shares(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--terminated-pod-gc-threshold", args.terminated_pod_gc_threshold,
                 "Number of finished pods that are kept")
      ->capture_default_str();
  app.add_flag("--terminated-pod-gc-fair", args.terminated_pod_gc_fair,
               "Above --terminated-pod-gc-threshold, delete pods of the owner with the most finished pods first, and "
               "record an event");
  add_parsed(app, "--pod-eviction-timeout", args.pod_eviction_timeout, parse_optional_duration,
             "Time without heartbeats after which the pods of a node are deleted; only with --eviction-mode=timeout",
             "DURATION", "5m0s");
  app.add_option("--eviction-mode", args.eviction_mode,
                 "taint: NoExecute taints and tolerations; timeout: --pod-eviction-timeout, the default of --compat "
                 "v1.7")
      ->check(one_of({"taint", "timeout"}))
      ->trigger_on_parse()  // the last one of several flags with the same meaning counts
      ->default_str(eviction_mode_of(args));
  app.add_option("--cloud-instance-check-command", args.cloud_instance_check_command,
                 "Program that reports (as JSON) which machines of nodes that are not Ready were deleted or shut down")
      ->type_name("COMMAND");
  add_duration(app, "--cloud-instance-check-timeout", args.cloud_instance_check_timeout,
               "Time limit of --cloud-instance-check-command");
  app.add_option("--compat", args.compat, "Behave as this Kubernetes release line, defects included")
      ->check(one_of({"v1.7", "v1.19", "v1.29", "v1.34"}));
  add_brakes(app, args.brakes);
  add_autoscaling(app, args.autoscaling);
  add_node_ranges(app, args);
}

}  // namespace spillway::cli
