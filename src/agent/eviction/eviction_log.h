// Log lines of the eviction engine that are written once, although their cause is there at each reading.
// Thread: loop. Bounds: one entry for each threshold, and for each sort of reclaim.
#pragma once

#include "agent/contract/ports.h"
#include "policy/eviction/threshold.h"
#include "telemetry/log.h"

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace spillway::agent {

class EvictionLog {
 public:
  explicit EvictionLog(const telemetry::Log& log) : log_(log) {}

  /// Logs each memory threshold once, when it is crossed. `reached`: those that are met now.
  void report_crossings(std::span<const eviction::Threshold> reached);

  /// Logs the result of a reclaim. While a disk is full a pass reclaims again each second, in vain: that is one line.
  void report_reclaimed(const ReclaimOutcome& outcome);

  /// The conditions of the node have changed: a reclaim in vain is logged again.
  void on_conditions_changed() { in_vain_.clear(); }

  /// Memory thresholds that are met, as they are described.
  const std::set<std::string>& crossed() const { return crossed_; }

  void restore(std::set<std::string> crossed) { crossed_ = std::move(crossed); }

 private:
  const telemetry::Log& log_;
  std::set<std::string> crossed_;
  /// The problem that was logged when an action freed nothing.
  std::map<eviction::ReclaimAction, std::optional<std::string>> in_vain_;
};

}  // namespace spillway::agent
