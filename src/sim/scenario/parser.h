// A scenario file, read strictly: every error names file, line, column and path, the expected form, and for an unknown
// key the nearest known one. Thread: any (pure but for `read`). Bounds: 1 MiB of YAML, 1,000 events, repeated 1,000
// times, 5,000 nodes; an imported file 256 MiB. Source: docs/simulate.md; ADR-0023.
#pragma once

#include "base/error.h"
#include "sim/scenario/document.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace spillway::sim {

/// The text of a file that the scenario names.
using ReadText = std::function<Result<std::string>(const std::string& file)>;

/// Replaces the cluster of the file, or its size.
struct ClusterOverride {
  std::optional<Inventory> inventory;
  std::optional<std::int64_t> nodes;  // nodes of a generated cluster
  std::optional<std::int64_t> zones;
  bool foreign_pods = false;  // other programs create pods: names of pods are not checked
};

/// `file` is for errors.
Result<Scenario> parse_scenario(const std::string& file, const std::string& text, const ReadText& read,
                                const ClusterOverride& instead = {});

/// A file with the members of `config:` alone. `base`: the values of absent members.
Result<ScenarioConfig> parse_scenario_config(const std::string& file, const std::string& text, const ReadText& read,
                                             ScenarioConfig base = {});

/// Checks that an agent can be started on each of its machines, also with the settings that the timeline gives it
/// later. Parsed files have passed this check; callers that change the configuration afterwards repeat it.
Outcome check_agents(const Scenario& scenario);

/// `brakes: on`.
void set_brakes(controllers::ControllerSet::Options& options, bool on);

}  // namespace spillway::sim
