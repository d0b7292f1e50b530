// The back-off before a workload replaces pods that were evicted from a node again and again. The first eviction is
// replaced at once: the replacement may well fare better. The eviction of a pod that was created since means a loop:
// replacements wait 10 s, then twice as long each time, at most 15 minutes; from the start again when half an hour has
// passed since the last wait. The eviction of a pod that is older than the beginning of the last wait is no sign of a
// loop: its replacement waits with the others during a wait, and is made at once otherwise. Thread: one. Bounds: one
// entry per node that has evicted pods of the owner and is not forgotten; pods of its last wait only. Source: our own;
// upstream replaces at once, but for DaemonSets (failure_backoff.h). ADR-0046.
#pragma once

#include "base/time.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace spillway::workloads {

/// The back-off of replacements for one owner's pods.
class EvictionBackoff {
 public:
  static constexpr Duration kMin = seconds(10);
  static constexpr Duration kMax = minutes(15);
  static constexpr Duration kForgottenAfter = 2 * kMax;

  struct Node {
    Duration wait{};             // zero: the first eviction costs nothing
    Instant until;               // no replacement of `pods` before then
    std::int64_t in_a_row = 1;   // consecutive evictions, each of a pod that was made after the eviction before
    std::set<std::string> pods;  // pods whose replacements wait
  };

  /// Records that the pod, of that age, was evicted from that node; once per pod. Returns the node's state after it.
  const Node& evicted(const std::string& node, const std::string& pod, Duration age, Instant now);

  /// The number of replacements that wait, on any node.
  std::size_t held(Instant now) const;
  /// The time until which no replacement is made for that node, or for the pod of that name. nullopt: at once.
  std::optional<Instant> node_held_until(const std::string& node, Instant now) const;
  std::optional<Instant> pod_held_until(const std::string& pod, Instant now) const;
  /// The end of the first wait; nullopt: nothing waits.
  std::optional<Instant> next_end(Instant now) const;

  /// Drops entries that have expired.
  void tidy(Instant now);

  /// Entries by the name of the node.
  const std::map<std::string, Node>& nodes() const { return nodes_; }

 private:
  std::map<std::string, Node> nodes_;
};

}  // namespace spillway::workloads
