// The wait of a DaemonSet before it replaces a failed pod on the same node: a second, then twice as long each time, at
// most 15 minutes; from the start again after half an hour without a failure there. Thread: one. Bounds: one entry per
// node of the set that has seen a failure; entries are dropped when they have run out. Source: kube-controller-manager
// 1.32, failedPodsBackoff (client-go flowcontrol.Backoff).
#pragma once

#include "base/time.h"

#include <map>
#include <optional>
#include <string>

namespace spillway::workloads {

class FailureBackoff {
 public:
  static constexpr Duration kMin = seconds(1);
  static constexpr Duration kMax = minutes(15);
  static constexpr Duration kForgottenAfter = 2 * kMax;

  /// Records that a pod on that node has failed and is deleted.
  void failed(const std::string& node, Instant now);
  /// The earliest time of a new pod on that node; nullopt: at once.
  std::optional<Instant> not_before(const std::string& node, Instant now) const;
  /// Drops entries that have expired.
  void tidy(Instant now);

  std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    Duration wait{};
    Instant failed_at;
  };

  std::map<std::string, Node> nodes_;
};

}  // namespace spillway::workloads
