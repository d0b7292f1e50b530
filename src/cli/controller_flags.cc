#include "cli/flags.h"

#include <CLI/CLI.hpp>

#include <string>

namespace spillway::cli {
namespace {

/// Zero is the default and means off.
void add_optional_brake(CLI::App& app, const std::string& flag, Duration& into, const std::string& help) {
  add_parsed(app, flag, into, parse_positive_duration, "Brake: " + help, "DURATION", "off");
}

void add_brakes(CLI::App& app, BrakeArgs& args) {
  const std::string limits = "; ACTS/DURATION[,zone=ACTS/DURATION][,owner=ACTS/DURATION]";
  app.add_option("--limit-not-ready", args.limit_not_ready, "Brake: nodes marked not ready within a window" + limits);
  app.add_option("--limit-taints", args.limit_taints, "Brake: nodes tainted (or evicted) within a window" + limits);
  app.add_option("--limit-deletions", args.limit_deletions, "Brake: pods deleted within a window" + limits);
  app.add_option("--zone-full-disruption", args.full_disruption,
                 "A fully disrupted zone is evicted at the normal rate, at the secondary rate (slow), or not (hold)")
      ->check(CLI::IsMember({"normal", "slow", "hold"}))
      ->capture_default_str();
  app.add_option("--heartbeat-stall-fraction", args.stall_share,
                 "Brake: if a larger share of the nodes is late at once, wait for --heartbeat-stall-max; 0: off")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  add_duration(app, "--heartbeat-stall-max", args.stall_max, "How long such a stall is not believed");
  add_optional_brake(app, "--watch-age-max", args.watch_age_max,
                     "do nothing while our own watch was silent for longer");
  add_optional_brake(app, "--clock-jump-max", args.clock_jump_max,
                     "do nothing for a grace period after a clock jumped, or this process stood still, for longer");
  add_optional_brake(app, "--storm-cool-down", args.storm_cool_down,
                     "do nothing for this long after a storm has passed");
  app.add_option("--hold-config-map", args.hold_config_map,
                 "Brake: do nothing while this ConfigMap exists (NAMESPACE/NAME); data.why is shown as the reason");
  app.add_flag("--respect-disruption-budgets", args.respect_budgets,
               "Brake: evict within PodDisruptionBudgets instead of deleting");
  app.add_flag("--wait-for-replacement", args.wait_for_replacement,
               "Brake: delete a pod only when its replacement could be placed");
}

}  // namespace

void add_leader_election(CLI::App& app, LeaderElectionArgs& args) {
  app.add_flag("--leader-elect,!--no-leader-elect", args.enabled, "Act only while holding the lease")
      ->capture_default_str();
  add_duration(app, "--leader-elect-lease-duration", args.lease_duration,
               "How long others wait for a lease that is not renewed");
  add_duration(app, "--leader-elect-renew-deadline", args.renew_deadline,
               "How long a leader acts after its last renewal");
  add_duration(app, "--leader-elect-retry-period", args.retry_period, "Between two attempts");
  app.add_option("--leader-elect-resource-name", args.resource_name, "Name of the lease")->capture_default_str();
  app.add_option("--leader-elect-resource-namespace", args.resource_namespace, "Its namespace")->capture_default_str();
}

void add_controller(CLI::App& app, ControllerArgs& args) {
  add_duration(app, "--node-monitor-period", args.node_monitor_period, "Period of the node health pass");
  add_duration(app, "--node-monitor-grace-period", args.node_monitor_grace_period,
               "Silence after which a node is Unknown");
  add_duration(app, "--node-startup-grace-period", args.node_startup_grace_period, "The same for a node never heard");
  app.add_option("--node-eviction-rate", args.node_eviction_rate, "Nodes per second tainted in a healthy zone")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--secondary-node-eviction-rate", args.secondary_node_eviction_rate,
                 "The same in a large zone that is partially down")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--large-cluster-size-threshold", args.large_cluster_size_threshold, "Zones above it are large")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--unhealthy-zone-threshold", args.unhealthy_zone_threshold,
                 "Share of unhealthy nodes that makes a zone partially down")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--terminated-pod-gc-threshold", args.terminated_pod_gc_threshold, "Finished pods that are kept")
      ->capture_default_str();
  add_parsed(app, "--pod-eviction-timeout", args.pod_eviction_timeout, parse_optional_duration,
             "Silence after which the pods of a node are deleted; --eviction-mode=timeout only", "DURATION", "5m0s");
  app.add_option("--eviction-mode", args.eviction_mode,
                 "taint: NoExecute taints and tolerations; timeout: --pod-eviction-timeout, as before 1.18")
      ->check(CLI::IsMember({"taint", "timeout"}))
      ->capture_default_str();
  app.add_option("--compat", args.compat, "Behave as this Kubernetes line, defects included")
      ->check(CLI::IsMember({"v1.7", "v1.19", "v1.29", "v1.34"}));
  add_brakes(app, args.brakes);
}

}  // namespace spillway::cli
