#include "apps/node_options.h"

#include "api/duration.h"
#include "apps/node_config.h"
#include "base/rng.h"

#include <utility>

namespace spillway::apps {

namespace {

Result<lifecycle::ActLimits> read_limits(const char* flag, const std::string& text) {
  auto limits = lifecycle::parse_act_limits(text);
  if (!limits) return Error{ErrorCode::kInvalid, limits.error().text(), flag};
  return limits;
}

Result<lifecycle::BrakeConfig> make_brakes(const cli::BrakeArgs& args, Duration clock_hold) {
  lifecycle::BrakeConfig brakes;
  SPILLWAY_TRY(not_ready, read_limits("--limit-not-ready", args.limit_not_ready));
  SPILLWAY_TRY(taints, read_limits("--limit-taints", args.limit_taints));
  SPILLWAY_TRY(deletions, read_limits("--limit-deletions", args.limit_deletions));
  brakes.mark_not_ready = not_ready;
  brakes.taint = taints;
  brakes.delete_pod = deletions;
  SPILLWAY_TRY(node_deletions, read_limits("--limit-node-deletions", args.limit_node_deletions));
  brakes.delete_node = node_deletions;
  if (args.stall_share > 0) brakes.stall_share = args.stall_share;
  brakes.stall_max = args.stall_max;
  if (args.watch_age_max > Duration::zero()) brakes.watch_age_max = args.watch_age_max;
  if (args.clock_jump_max > Duration::zero()) brakes.clock_jump_max = args.clock_jump_max;
  brakes.clock_hold = clock_hold;
  brakes.cool_down = args.storm_cool_down;
  return brakes;
}

lifecycle::FullDisruption full_disruption(const std::string& text) {
  if (text == "hold") return lifecycle::FullDisruption::kHold;
  return text == "slow" ? lifecycle::FullDisruption::kSlow : lifecycle::FullDisruption::kNormal;
}

}  // namespace

Result<controllers::ControllerSet::Options> make_controller_options(const cli::ControllerArgs& args) {
  controllers::ControllerSet::Options options;
  options.node_lifecycle.node_monitor_period = args.node_monitor_period;
  lifecycle::MonitorConfig& monitor = options.node_lifecycle.monitor;
  monitor.health.node_monitor_grace_period = args.node_monitor_grace_period;
  monitor.health.node_startup_grace_period = args.node_startup_grace_period;
  monitor.zones.node_eviction_rate = static_cast<float>(args.node_eviction_rate);
  monitor.zones.secondary_node_eviction_rate = static_cast<float>(args.secondary_node_eviction_rate);
  monitor.zones.large_cluster_size_threshold = args.large_cluster_size_threshold;
  monitor.zones.unhealthy_zone_threshold = static_cast<float>(args.unhealthy_zone_threshold);
  monitor.zones.full_disruption = full_disruption(args.brakes.full_disruption);
  if (args.pod_eviction_timeout) monitor.pod_eviction_timeout = *args.pod_eviction_timeout;
  const auto mode =
      args.eviction_mode == "timeout" ? lifecycle::EvictionMode::kLegacy : lifecycle::EvictionMode::kTaint;
  lifecycle::Profile profile;
  profile.mode = mode;
  if (const auto line = lifecycle::parse_line(args.compat)) profile = lifecycle::upstream_profile(*line, mode);
  options.node_lifecycle.profile = profile;
  options.taint_eviction.profile = profile;
  options.taint_eviction.start_hold = args.node_monitor_grace_period;
  options.taint_eviction.respect_budgets = args.brakes.respect_budgets;
  options.taint_eviction.wait_for_replacement = args.brakes.wait_for_replacement;
  options.node_lifecycle.hold_config_map = args.brakes.hold_config_map;
  const std::string& hold = options.node_lifecycle.hold_config_map;
  if (!hold.empty() && (hold.find('/') == std::string::npos || hold.starts_with('/') || hold.ends_with('/'))) {
    return invalid("--hold-config-map", "expected NAMESPACE/NAME, got \"{}\"", hold);
  }
  SPILLWAY_TRY(brakes, make_brakes(args.brakes, args.node_monitor_grace_period));
  options.brakes = std::move(brakes);
  options.cloud_check.enabled = !args.cloud_instance_check_command.empty();
  options.cloud_check.period = args.node_monitor_period;
  options.cloud_check.profile = profile;
  options.pod_gc.terminated_threshold = args.terminated_pod_gc_threshold;
  return options;
}

std::string instance_of(const std::string& directory) {
  return fmt::format("{:08x}", static_cast<std::uint32_t>(fnv1a64(directory)));
}

std::string node_state_dir(const std::string& given, const std::string& data_dir, const std::string& node) {
  return (given.empty() ? data_dir + "/nodes" : given) + "/" + node;
}

Result<agent::AgentOptions> make_agent_options(const cli::NodeArgs& args, std::string node_name, Bytes memory) {
  SPILLWAY_TRY(config, read_node_config(args.config));
  SPILLWAY_TRY(options, agent::options_of(agent::effective_config(config.value, memory)));
  options.node_name = std::move(node_name);
  options.eviction.memory_estimator = args.memory_estimator;
  options.eviction.mem_available_floor = args.mem_available_floor;
  options.eviction.memory_brake = args.memory_brake ? agent::Brake::kOn : agent::Brake::kOff;
  options.labels.insert(args.labels.begin(), args.labels.end());
  return options;
}

api::Json kubelet_configuration(const agent::AgentOptions& options) {
  const auto map = [](const eviction::SignalMap& entries) {
    api::Json out = api::Json::object();
    for (const auto& [signal, value] : entries) out[signal] = value;
    return out;
  };
  const eviction::ThresholdConfig& thresholds = options.eviction.thresholds;
  api::Json shown = api::Json::object(
      {{"kind", "KubeletConfiguration"},
       {"apiVersion", "kubelet.config.k8s.io/v1beta1"},
       {"enableServer", options.daemon_port != 0},
       {"port", options.daemon_port},
       {"maxPods", options.pods_max},
       {"nodeStatusUpdateFrequency", api::format_duration(options.status_update_frequency)},
       {"nodeStatusReportFrequency", api::format_duration(options.status_report_frequency)},
       {"nodeLeaseDurationSeconds", std::chrono::duration_cast<seconds>(options.lease_duration).count()},
       {"evictionHard", map(thresholds.hard)},
       {"evictionSoft", map(thresholds.soft)},
       {"evictionSoftGracePeriod", map(thresholds.soft_grace_period)},
       {"evictionMinimumReclaim", map(thresholds.minimum_reclaim)},
       {"evictionPressureTransitionPeriod", api::format_duration(options.eviction.pressure_transition_period)},
       {"evictionMaxPodGracePeriod", options.eviction.max_pod_grace_period_seconds},
       {"topologyManagerPolicy", options.managers.topology.policy},
       {"topologyManagerScope", options.managers.topology.scope},
       {"cpuManagerPolicy", options.managers.cpus.policy},
       {"memoryManagerPolicy", options.managers.memory.policy},
       {"reservedSystemCPUs", options.managers.cpus.reserved.text()},
       {"shutdownGracePeriod", api::format_duration(seconds(options.shutdown.grace_seconds))},
       {"shutdownGracePeriodCriticalPods", api::format_duration(seconds(options.shutdown.critical_grace_seconds))},
       {"fileCheckFrequency", api::format_duration(options.file_check_frequency)},
       {"registerNode", true}});
  if (!options.static_pod_path.empty()) shown["staticPodPath"] = options.static_pod_path;
  return shown;
}

}  // namespace spillway::apps
