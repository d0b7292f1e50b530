// Writes the conditions of nodes that fell silent. A write that is refused or lost is repeated from the present state
// of the node: it may have posted in the meantime, and then nothing is written. Thread: loop. Bounds: one write per
// node in flight, `attempts_max` attempts each. Source: spec "Node lifecycle", S5.3, S5.4.
#pragma once

#include "controllers/shared/lifecycle_metrics.h"
#include "controllers/shared/shared.h"
#include "policy/lifecycle/node_monitor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace spillway::controllers {

class NodeStatusWriter {
 public:
  using NodePtr = std::shared_ptr<const api::Node>;
  /// The node after the write, or as it was found, and the decisions that follow.
  using Finished = std::function<void(const NodePtr& node, const lifecycle::Assessment& assessment, Now now)>;
  /// The node was deleted, or the last attempt failed.
  using Abandoned = std::function<void(const std::string& node, Now now)>;

  struct Options {
    Duration retry_wait = milliseconds(20);
    int attempts_max = 6;
  };

  NodeStatusWriter(Shared shared, lifecycle::NodeMonitor& monitor, LifecycleMetrics& metrics,
                   lifecycle::HealthConfig health, Options options, Finished finished, Abandoned abandoned);
  NodeStatusWriter(const NodeStatusWriter&) = delete;
  NodeStatusWriter& operator=(const NodeStatusWriter&) = delete;

  /// `assessment.write` must have a value, and the node must not be busy. Calls one of `finished` and `abandoned` in a
  /// later step.
  void write(const NodePtr& node, const lifecycle::Assessment& assessment, Now now);

  bool busy(std::string_view node) const { return writing_.contains(node); }

 private:
  friend class NodeStatusWrite;

  Shared shared_;
  lifecycle::NodeMonitor& monitor_;
  LifecycleMetrics& metrics_;
  lifecycle::HealthConfig health_;
  Options options_;
  Finished finished_;
  Abandoned abandoned_;
  std::set<std::string, std::less<>> writing_;
};

}  // namespace spillway::controllers
