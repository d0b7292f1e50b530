#include "agent/eviction/pass_config.h"

#include "agent/contract/blind_zone.h"
#include "policy/eviction/threshold_parse.h"

#include <utility>
#include <vector>

namespace spillway::agent {

Result<eviction::PassConfig> pass_config_of(const EvictionOptions& options, const MachineInfo& machine,
                                            std::string node_name, const telemetry::Log& log) {
  SPILLWAY_TRY(thresholds, eviction::parse_thresholds(options.thresholds));
  for (const eviction::Signal signal : eviction::never_met(thresholds)) {
    log.warning("eviction threshold can never be met", {{"signal", to_string(signal)}});
  }
  for (const BlindThreshold& each : thresholds_in_blind_zone(thresholds, machine.memory, options)) {
    log.warning("the kernel's OOM killer may act before this threshold is met; raise it",
                {{"signal", to_string(each.signal)},
                 {"threshold_bytes", each.threshold.count()},
                 {"blind_zone_bytes", each.blind_zone.count()}});
  }
  if (const auto floor = options.memory_watch.mem_available_floor) {
    thresholds.push_back({.signal = eviction::Signal::kMemAvailable,
                          .value = api::Quantity::of_bytes(*floor),
                          .grace_period = {},
                          .min_reclaim = {}});
  }
  return eviction::PassConfig{.thresholds = std::move(thresholds),
                              .pressure_transition_period = options.pressure_transition_period,
                              .max_pod_grace_period_seconds = options.max_pod_grace_period_seconds,
                              .local_storage_limits = options.local_storage_limits,
                              .memory_estimator = options.memory_watch.estimator,
                              .node = std::move(node_name)};
}

}  // namespace spillway::agent
