#include "apps/node/node_options.h"

#include "agent/config/gate_config.h"
#include "agent/config/image_config.h"
#include "apps/node/node_config.h"
#include "apps/process/process.h"
#include "base/rng.h"
#include "policy/addresses/node_ranges.h"
#include "policy/lifecycle/lines/kubernetes_line.h"

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
  const Duration grace = cli::grace_period_of(args);
  monitor.health.node_monitor_grace_period = grace;
  monitor.health.node_startup_grace_period = args.node_startup_grace_period;
  monitor.zones.node_eviction_rate = static_cast<float>(args.node_eviction_rate);
  monitor.zones.secondary_node_eviction_rate = static_cast<float>(args.secondary_node_eviction_rate);
  monitor.zones.large_cluster_size_threshold = args.large_cluster_size_threshold;
  monitor.zones.unhealthy_zone_threshold = static_cast<float>(args.unhealthy_zone_threshold);
  monitor.zones.full_disruption = full_disruption(args.brakes.full_disruption);
  if (args.pod_eviction_timeout) monitor.pod_eviction_timeout = *args.pod_eviction_timeout;
  const auto mode =
      cli::eviction_mode_of(args) == "timeout" ? lifecycle::EvictionMode::kLegacy : lifecycle::EvictionMode::kTaint;
  lifecycle::Profile profile;
  profile.mode = mode;
  if (const auto line = lifecycle::parse_line(args.compat)) profile = lifecycle::upstream_profile(*line, mode);
  options.node_lifecycle.profile = profile;
  options.taint_eviction.profile = profile;
  options.enabled.taint_eviction = args.taint_manager;
  options.taint_eviction.start_hold = grace;
  options.taint_eviction.respect_budgets = args.brakes.respect_budgets;
  options.taint_eviction.wait_for_replacement = args.brakes.wait_for_replacement;
  if (args.brakes.replace_before_deletion && mode == lifecycle::EvictionMode::kLegacy) {
    return invalid("--replace-before-deletion",
                   "pods are replaced first where taints evict them (--eviction-mode taint), not by a timeout");
  }
  options.taint_eviction.replace_before_deletion = args.brakes.replace_before_deletion;
  options.eviction_backoff = args.brakes.eviction_backoff;
  options.node_lifecycle.hold_config_map = args.brakes.hold_config_map;
  const std::string& hold = options.node_lifecycle.hold_config_map;
  if (!hold.empty() && (hold.find('/') == std::string::npos || hold.starts_with('/') || hold.ends_with('/'))) {
    return invalid("--hold-config-map", "expected NAMESPACE/NAME, got \"{}\"", hold);
  }
  SPILLWAY_TRY(brakes, make_brakes(args.brakes, grace));
  options.brakes = std::move(brakes);
  options.cloud_check.enabled = !args.cloud_instance_check_command.empty();
  options.cloud_check.period = args.node_monitor_period;
  options.cloud_check.facts = profile.facts;
  options.autoscaling = args.autoscaling;
  if (args.allocate_node_cidrs) {
    SPILLWAY_TRY(ranges, addresses::parse_node_ranges(args.node_ranges));
    options.node_ranges = std::move(ranges);
  }
  options.pod_gc.finished = {
      .threshold = args.terminated_pod_gc_threshold,
      .order = args.terminated_pod_gc_fair ? lifecycle::FinishedOrder::kFair : lifecycle::FinishedOrder::kEvictedFirst};
  return options;
}

void warn_of_flags_without_effect(const std::vector<cli::FlagWithoutEffect>& flags) {
  for (const auto& [flag, why] : flags)
    print_to_stderr(fmt::format("spillway: warning: {} has no effect here: {}\n", flag, why));
}

std::string instance_of(const std::string& directory) {
  return fmt::format("{:08x}", static_cast<std::uint32_t>(fnv1a64(directory)));
}

std::string node_state_dir(const std::string& given, const std::string& data_dir, const std::string& node) {
  return (given.empty() ? data_dir + "/nodes" : given) + "/" + node;
}

Result<NodeSetup> make_node_setup(const cli::NodeArgs& args, std::string node_name, Bytes memory) {
  SPILLWAY_TRY(config, read_node_config(args.config));
  NodeSetup setup{
      .agent = {}, .gate = {}, .image_gc = {}, .configuration = agent::effective_config(config.value, memory)};
  SPILLWAY_TRY(options, agent::options_of(setup.configuration));
  SPILLWAY_TRY(gate, agent::gate_of(setup.configuration));
  setup.agent = std::move(options);
  setup.gate = std::move(gate);
  SPILLWAY_TRY(image_gc, agent::image_gc_of(setup.configuration));
  setup.image_gc = image_gc;
  setup.agent.node_name = std::move(node_name);
  setup.agent.labels.insert(args.labels.begin(), args.labels.end());
  if (!args.register_schedulable && setup.agent.registration == agent::Registration::kSchedulable) {
    setup.agent.registration = agent::Registration::kUnschedulable;
  }
  setup.agent.eviction.memory_watch = args.memory_watch;
  if (args.cloud_provider == "external") setup.agent.cloud_provider = agent::CloudProvider::kExternal;
  if (!args.status_compat.empty()) setup.agent.status_profile = agent::StatusProfile::kOutOfDisk;
  return setup;
}

}  // namespace spillway::apps
