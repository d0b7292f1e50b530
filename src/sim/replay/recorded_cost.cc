#include "sim/replay/recorded_cost.h"

#include "agent/recording/replay.h"
#include "sim/replay/lifecycle_replay.h"

#include "recording/frame.h"
#include "recording/rows.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::sim {
namespace {

using ShouldContinue = std::function<bool(std::size_t, std::size_t)>;
using recording::ReplayRow;

/// `agents:` is a whole configuration: members that it leaves out have their defaults on this node. Settings beyond a
/// KubeletConfiguration, and all settings if there is no `agents:`, are the recorded ones.
Result<agent::EvictionOptions> options_under(const ConfigChoice& config, const agent::RecordedNode& node) {
  const agent::EvictionOptions& was = node.options;
  SPILLWAY_TRY(agents, agents_under(config, node.memory));
  if (!agents) return was;
  agent::EvictionOptions made = std::move(agents->eviction);
  made.cleanup_wait = was.cleanup_wait;
  made.memory_watch = was.memory_watch;
  made.blind_zone = was.blind_zone;
  made.blind_zone_ahead = was.blind_zone_ahead;
  made.observe = was.observe;
  return made;
}

/// The recorded options, with the changes of the choice.
Result<agent::EvictionOptions> eviction_under(const Choice& choice, const agent::RecordedNode& node) {
  agent::EvictionOptions made = node.options;
  if (choice.config) {
    SPILLWAY_TRY(under, options_under(*choice.config, node));
    made = std::move(under);
  }
  if (choice.memory_available) made.thresholds.hard.insert_or_assign("memory.available", *choice.memory_available);
  return made;
}

bool is_eviction(const ReplayRow& row) {
  return row.would_be && row.would_be->key.starts_with("evict ");
}

Result<Cost> of_node(std::string_view file, const Choice& choice, const ShouldContinue& should_continue) {
  if (choice.system_reserved) {
    return invalid("--system-reserved", "a recording of a node does not say what a reservation would change");
  }
  agent::Replay::Reconfigure reconfigure;
  if (choice.memory_available || choice.config) {
    reconfigure = [&choice](const agent::RecordedNode& node) { return eviction_under(choice, node); };
  }
  SPILLWAY_TRY(report, agent::replay_recording(file, std::move(reconfigure), should_continue));
  agent::AgentOptions options;
  SPILLWAY_TRY(eviction, eviction_under(choice, report.node));
  options.eviction = std::move(eviction);
  Cost cost{.kept_free = {}, .runs = 1, .recordings = 1};
  SPILLWAY_TRY(kept, kept_free(options, report.node.memory));
  cost.kept_free = kept;
  const std::optional<Instant> first = recording::first_difference(report.rows);
  for (const ReplayRow& row : report.rows) {
    const bool was = row.decided && row.decided->key.starts_with("evict ");
    if (was && !row.would_be) ++cost.without_evidence;
    if (!is_eviction(row)) continue;
    ++cost.evicted;
    if (first && row.at() > *first) ++cost.without_evidence;
  }
  return cost;
}

Result<Cost> of_controller(std::string_view file, const Choice& choice, const ShouldContinue& should_continue) {
  ReconfigureController reconfigure;
  if (choice.brakes || choice.config) {
    reconfigure = [&choice](const controllers::RecordedController& was) -> Result<controllers::RecordedController> {
      controllers::RecordedController made = was;
      if (choice.config) {
        SPILLWAY_TRY(under, controller_under(*choice.config, was));
        made = std::move(under);
      }
      if (!choice.brakes) return made;
      controllers::ControllerSet::Options options;
      options.node_lifecycle.monitor = made.monitor;
      set_brakes(options, *choice.brakes);
      made.monitor = options.node_lifecycle.monitor;
      made.brakes = options.brakes;
      return made;
    };
  }
  SPILLWAY_TRY(report, replay_lifecycle(file, reconfigure, should_continue));
  Cost cost{.kept_free = {}, .runs = 1, .recordings = 1, .controllers = 1};
  for (const ReplayRow& row : report.rows) {
    if (!row.would_be) continue;
    const std::string& what = row.would_be->what;
    if (what == "marked Unknown") ++cost.flips;
    if (what.starts_with("tainted ")) ++cost.tainted;
    if (what == "pods evicted") ++cost.deleted;
  }
  return cost;
}

}  // namespace

bool is_recording(std::string_view head) {
  return head.starts_with(recording::kAgentKind.header) || head.starts_with(recording::kControllerKind.header);
}

Result<controllers::RecordedController> controller_under(const ConfigChoice& config,
                                                         const controllers::RecordedController& was) {
  ScenarioConfig base;
  base.controllers.node_lifecycle.node_monitor_period = was.node_monitor_period;
  base.controllers.node_lifecycle.monitor = was.monitor;
  base.controllers.brakes = was.brakes;
  SPILLWAY_TRY(parsed, parse_scenario_config(config.file, config.text, config.read, std::move(base)));
  controllers::RecordedController made = was;
  made.node_monitor_period = parsed.controllers.node_lifecycle.node_monitor_period;
  made.monitor = parsed.controllers.node_lifecycle.monitor;
  made.brakes = parsed.controllers.brakes;
  return made;
}

Result<Cost> cost_of_recording(std::string_view file, const Choice& choice, const ShouldContinue& should_continue) {
  return file.starts_with(recording::kControllerKind.header) ? of_controller(file, choice, should_continue)
                                                             : of_node(file, choice, should_continue);
}

}  // namespace spillway::sim
