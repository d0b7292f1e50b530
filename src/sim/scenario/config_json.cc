#include "sim/scenario/config_json.h"

#include "api/text/duration.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

namespace spillway::sim {
namespace {

using api::Json;

void put(Json& out, std::string_view name, Duration value, Duration usual) {
  if (value != usual) out[name] = api::format_duration(value);
}

/// Writes a float as the shortest decimal number that reads back as the same value.
void put(Json& out, std::string_view name, float value, float usual) {
  if (value != usual) out[name] = std::stod(fmt::format("{}", value));
}

std::string limit_text(const lifecycle::ActLimit& limit) {
  return fmt::format("{}/{}", limit.acts, api::format_duration(limit.window));
}

void put(Json& out, std::string_view name, const lifecycle::ActLimits& limits) {
  std::string text;
  if (limits.global) text += "," + limit_text(*limits.global);
  if (limits.per_zone) text += ",zone=" + limit_text(*limits.per_zone);
  if (limits.per_owner) text += ",owner=" + limit_text(*limits.per_owner);
  if (!text.empty()) out[name] = text.substr(1);
}

Json brakes_json(const lifecycle::BrakeConfig& brakes) {
  const lifecycle::BrakeConfig usual;
  Json out = Json::object();
  put(out, "markNotReady", brakes.mark_not_ready);
  put(out, "taint", brakes.taint);
  put(out, "deletePod", brakes.delete_pod);
  put(out, "deleteNode", brakes.delete_node);
  if (brakes.stall_share) out["stallShare"] = *brakes.stall_share;
  put(out, "stallMax", brakes.stall_max, usual.stall_max);
  if (brakes.watch_age_max) out["watchAgeMax"] = api::format_duration(*brakes.watch_age_max);
  if (brakes.clock_jump_max) out["clockJumpMax"] = api::format_duration(*brakes.clock_jump_max);
  put(out, "coolDown", brakes.cool_down, usual.cool_down);
  return out;
}

Json controllers_json(const controllers::ControllerSet::Options& options) {
  const controllers::ControllerSet::Options defaults;
  const auto& nodes = options.node_lifecycle;
  const auto& usual = defaults.node_lifecycle;
  const auto& zones = nodes.monitor.zones;
  const auto& usual_zones = usual.monitor.zones;
  Json out = Json::object();
  put(out, "nodeMonitorPeriod", nodes.node_monitor_period, usual.node_monitor_period);
  put(out, "nodeMonitorGracePeriod", nodes.monitor.health.node_monitor_grace_period,
      usual.monitor.health.node_monitor_grace_period);
  put(out, "nodeStartupGracePeriod", nodes.monitor.health.node_startup_grace_period,
      usual.monitor.health.node_startup_grace_period);
  put(out, "nodeEvictionRate", zones.node_eviction_rate, usual_zones.node_eviction_rate);
  put(out, "secondaryNodeEvictionRate", zones.secondary_node_eviction_rate, usual_zones.secondary_node_eviction_rate);
  put(out, "unhealthyZoneThreshold", zones.unhealthy_zone_threshold, usual_zones.unhealthy_zone_threshold);
  if (zones.large_cluster_size_threshold != usual_zones.large_cluster_size_threshold)
    out["largeClusterSizeThreshold"] = std::int64_t{zones.large_cluster_size_threshold};
  if (options.eviction_backoff) out["evictionBackoff"] = true;
  if (options.taint_eviction.respect_budgets) out["respectDisruptionBudgets"] = true;
  if (options.taint_eviction.wait_for_replacement) out["waitForReplacement"] = true;
  if (options.taint_eviction.replace_before_deletion) out["replaceBeforeDeletion"] = true;
  if (zones.full_disruption != usual_zones.full_disruption) {
    out["fullDisruption"] = zones.full_disruption == lifecycle::FullDisruption::kSlow   ? "slow"
                            : zones.full_disruption == lifecycle::FullDisruption::kHold ? "hold"
                                                                                        : "normal";
  }
  return out;
}

}  // namespace

Json config_json(const ScenarioConfig& config) {
  Json out = Json::object();
  if (!(config.agents_written == Json())) out["agents"] = config.agents_written;
  Json brakes = brakes_json(config.controllers.brakes);
  if (!brakes.if_object()->empty()) out["brakes"] = std::move(brakes);
  Json controllers = controllers_json(config.controllers);
  if (!controllers.if_object()->empty()) out["controllers"] = std::move(controllers);
  return out;
}

}  // namespace spillway::sim
