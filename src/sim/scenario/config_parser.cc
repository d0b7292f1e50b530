#include "sim/scenario/config_parser.h"

#include "agent/config/kubelet_config.h"
#include "sim/scenario/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace spillway::sim {
namespace {

using yaml::Place;

/// "evictionHard[memory.available]" below "config[agents]": "config[agents][evictionHard][memory.available]".
std::string path_below(const std::string& prefix, std::string_view path) {
  if (prefix.empty() || path.empty()) return prefix + std::string(path);
  const std::size_t end = std::min(path.find('['), path.size());
  return fmt::format("{}[{}]{}", prefix, path.substr(0, end), path.substr(end));
}

/// The configuration of a kubelet in a scenario; the result refers to `document`.
agent::ConfigDocument kubelet_document(const std::string& file, const yaml::Document& document, const api::Json& value,
                                       const std::string& prefix) {
  const auto find = [&document, prefix](std::string_view path) {
    const yaml::Origin* origin = document.origins.find(path_below(prefix, path));
    return origin == nullptr ? std::nullopt : std::optional(agent::ScalarOrigin{origin->line, origin->text});
  };
  return {.file = file, .value = value, .origins = find};
}

Result<agent::AgentOptions> agent_options(const agent::ConfigDocument& document,
                                          std::optional<Bytes> node_memory = std::nullopt) {
  const agent::CheckedConfig checked = agent::check_config(document);
  for (const agent::ConfigFinding& finding : checked.findings) {
    if (finding.kind != agent::ConfigFinding::Kind::kNotImplemented)
      return Error{ErrorCode::kInvalid, finding.text(), {}};
  }
  return agent::options_of(agent::effective_config(checked.value, node_memory));
}

/// A mapping of members of a KubeletConfiguration, or the name of a file that is one.
Result<agent::AgentOptions> parse_agents(const Place& place, const DocumentPart& part, const ReadText& read,
                                         std::optional<Bytes> node_memory = std::nullopt) {
  if (const std::string* name = place.value().if_string()) {
    auto text = read(*name);
    if (!text) return place.wrong(text.error().text());
    SPILLWAY_TRY(document, yaml::parse(*name, *text));
    return agent_options(kubelet_document(*name, document, document.value, ""), node_memory);
  }
  if (!place.value().is_object()) return place.wrong("expected a file or members of a KubeletConfiguration");
  const std::string prefix = part.path.empty() ? "agents" : part.path + "[agents]";
  api::Json value = place.value();
  value["apiVersion"] = "kubelet.config.k8s.io/v1beta1";
  value["kind"] = "KubeletConfiguration";
  auto options = agent_options(kubelet_document(part.file, part.document, value, prefix), node_memory);
  if (!options && options.error().message.find(part.file) == std::string::npos)
    return place.wrong(options.error().text());
  return options;
}

Outcome parse_controllers(const Place& place, controllers::ControllerSet::Options& options) {
  SPILLWAY_TRY_VOID(place.check_members({"nodeMonitorPeriod", "nodeMonitorGracePeriod", "nodeStartupGracePeriod",
                                         "nodeEvictionRate", "secondaryNodeEvictionRate", "unhealthyZoneThreshold",
                                         "largeClusterSizeThreshold", "fullDisruption", "evictionBackoff",
                                         "respectDisruptionBudgets", "waitForReplacement", "replaceBeforeDeletion"}));
  auto& lifecycle = options.node_lifecycle;
  SPILLWAY_TRY(period, read_duration(place, "nodeMonitorPeriod"));
  if (period) lifecycle.node_monitor_period = *period;
  SPILLWAY_TRY(grace, read_duration(place, "nodeMonitorGracePeriod"));
  if (grace) lifecycle.monitor.health.node_monitor_grace_period = *grace;
  SPILLWAY_TRY(startup, read_duration(place, "nodeStartupGracePeriod"));
  if (startup) lifecycle.monitor.health.node_startup_grace_period = *startup;
  auto& zones = lifecycle.monitor.zones;
  SPILLWAY_TRY(rate, read_fraction(place, "nodeEvictionRate", 0, 1000));
  if (rate) zones.node_eviction_rate = static_cast<float>(*rate);
  SPILLWAY_TRY(secondary, read_fraction(place, "secondaryNodeEvictionRate", 0, 1000));
  if (secondary) zones.secondary_node_eviction_rate = static_cast<float>(*secondary);
  SPILLWAY_TRY(threshold, read_fraction(place, "unhealthyZoneThreshold", 0, 1));
  if (threshold) zones.unhealthy_zone_threshold = static_cast<float>(*threshold);
  SPILLWAY_TRY(large, place.number("largeClusterSizeThreshold", 0, 1'000'000));
  if (large) zones.large_cluster_size_threshold = static_cast<std::int32_t>(*large);
  SPILLWAY_TRY(backoff, place.flag("evictionBackoff"));
  if (backoff) options.eviction_backoff = *backoff;
  auto& evictions = options.taint_eviction;
  SPILLWAY_TRY(budgets, place.flag("respectDisruptionBudgets"));
  evictions.respect_budgets = budgets.value_or(evictions.respect_budgets);
  SPILLWAY_TRY(room, place.flag("waitForReplacement"));
  evictions.wait_for_replacement = room.value_or(evictions.wait_for_replacement);
  SPILLWAY_TRY(first, place.flag("replaceBeforeDeletion"));
  evictions.replace_before_deletion = first.value_or(evictions.replace_before_deletion);
  SPILLWAY_TRY(full, place.optional_text("fullDisruption"));
  if (full.empty()) return {};
  if (full != "normal" && full != "slow" && full != "hold") {
    return place.member("fullDisruption").wrong(fmt::format("expected normal, slow or hold, got \"{}\"", full));
  }
  zones.full_disruption = full == "slow"   ? lifecycle::FullDisruption::kSlow
                          : full == "hold" ? lifecycle::FullDisruption::kHold
                                           : lifecycle::FullDisruption::kNormal;
  return {};
}

Outcome parse_limits(const Place& place, std::string_view name, lifecycle::ActLimits& limits) {
  SPILLWAY_TRY(text, place.optional_text(name));
  if (text.empty()) return {};
  const auto parsed = lifecycle::parse_act_limits(text);
  if (!parsed) return place.member(name).wrong(parsed.error().text());
  limits = *parsed;
  return {};
}

Outcome parse_brakes(const Place& place, controllers::ControllerSet::Options& options) {
  if (const auto on = place.value().if_bool()) {
    set_brakes(options, *on);
    return {};
  }
  if (!place.value().is_object()) return place.wrong("expected on, off or a mapping of brakes");
  SPILLWAY_TRY_VOID(place.check_members({"markNotReady", "taint", "deletePod", "deleteNode", "stallShare", "stallMax",
                                         "watchAgeMax", "clockJumpMax", "coolDown"}));
  lifecycle::BrakeConfig& brakes = options.brakes;
  SPILLWAY_TRY_VOID(parse_limits(place, "markNotReady", brakes.mark_not_ready));
  SPILLWAY_TRY_VOID(parse_limits(place, "taint", brakes.taint));
  SPILLWAY_TRY_VOID(parse_limits(place, "deletePod", brakes.delete_pod));
  SPILLWAY_TRY_VOID(parse_limits(place, "deleteNode", brakes.delete_node));
  SPILLWAY_TRY(share, read_fraction(place, "stallShare", 0, 1));
  if (share) brakes.stall_share = share;
  SPILLWAY_TRY(stall, read_duration(place, "stallMax"));
  if (stall) brakes.stall_max = *stall;
  SPILLWAY_TRY(age, read_duration(place, "watchAgeMax"));
  if (age) brakes.watch_age_max = age;
  SPILLWAY_TRY(jump, read_duration(place, "clockJumpMax"));
  if (jump) brakes.clock_jump_max = jump;
  SPILLWAY_TRY(cool, read_duration(place, "coolDown"));
  if (cool) brakes.cool_down = *cool;
  return {};
}

}  // namespace

void set_brakes(controllers::ControllerSet::Options& options, bool on) {
  using lifecycle::ActLimit;
  lifecycle::BrakeConfig brakes;
  auto& full_disruption = options.node_lifecycle.monitor.zones.full_disruption;
  full_disruption = on ? lifecycle::FullDisruption::kSlow : lifecycle::FullDisruption::kNormal;
  if (on) {
    brakes.mark_not_ready.global = ActLimit{20, minutes(1)};
    brakes.taint.global = ActLimit{3, minutes(5)};
    brakes.delete_pod = {ActLimit{10, minutes(1)}, ActLimit{5, minutes(1)}, ActLimit{2, seconds(10)}};
    brakes.stall_share = 0.5;
    brakes.stall_max = minutes(15);
    brakes.watch_age_max = minutes(3);
    brakes.clock_jump_max = seconds(5);
    brakes.cool_down = minutes(2);
  }
  options.brakes = brakes;
}

Result<std::optional<agent::AgentOptions>> parse_agents_of(const Place& config, const DocumentPart& part,
                                                           const ReadText& read, Bytes node_memory) {
  if (!config.has("agents")) return std::optional<agent::AgentOptions>();
  SPILLWAY_TRY(agents, parse_agents(config.member("agents"), part, read, node_memory));
  return std::optional(std::move(agents));
}

Result<agent::AgentOptions> agent_options_of(const api::Json& members) {
  agent::ConfigDocument document{.file = "agents", .value = members, .origins = {}};
  document.value["apiVersion"] = "kubelet.config.k8s.io/v1beta1";
  document.value["kind"] = "KubeletConfiguration";
  return agent_options(document);
}

Result<ScenarioConfig> parse_config(const Place& config, const DocumentPart& part, const ReadText& read,
                                    ScenarioConfig base) {
  SPILLWAY_TRY_VOID(config.check_members({"agents", "controllers", "brakes"}));
  ScenarioConfig out = std::move(base);
  if (config.has("brakes")) SPILLWAY_TRY_VOID(parse_brakes(config.member("brakes"), out.controllers));
  if (config.has("controllers")) SPILLWAY_TRY_VOID(parse_controllers(config.member("controllers"), out.controllers));
  if (config.has("agents")) {
    SPILLWAY_TRY(agents, parse_agents(config.member("agents"), part, read));
    out.agents = std::move(agents);
    out.agents_written = config.member("agents").value();
  }
  return out;
}

}  // namespace spillway::sim
