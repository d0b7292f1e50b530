// Checks the limits of the brakes against the writes to the store: properties act-limits and taint-rate. A limit is
// over decisions; writes follow theirs within `late_max`, so that the writes of a window that much shorter are
// decisions of one window. Thread: one.
#pragma once

#include "api/object/node.h"
#include "api/object/pod.h"
#include "base/time.h"
#include "sim/properties/verdicts.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace spillway::sim {

class ActAudit {
 public:
  /// A limit of `acts` in any `window`.
  struct Limit {
    std::int32_t acts = 0;
    Duration window{};
  };

  struct Limits {
    double node_eviction_rate = 0.1;  // nodes per second and zone
    std::optional<Limit> mark;
    std::optional<Limit> mark_in_zone;
    std::optional<Limit> taint;
    std::optional<Limit> taint_in_zone;
    std::optional<Limit> delete_pod;
    Duration late_max = seconds(5);  // from the decision to the store
  };

  ActAudit(const Limits& limits, Verdicts& verdicts) : limits_(limits), verdicts_(verdicts) {}

  void on_node(const api::Node* before, const api::Node& after, Now now);
  void on_pod(const api::Pod& before, const api::Pod& after, Now now);
  /// The controllers restarted with empty memory: every bucket is full again, no window has an act.
  void on_restart(Now now);

 private:
  void check_rate(const std::string& zone, Now now);
  void count(const std::string& scope, const std::optional<Limit>& limit, Now now);

  Limits limits_;
  Verdicts& verdicts_;
  double bucket_allowance_ = 1;
  std::deque<Instant> restarts_;
  std::map<std::string, std::deque<Instant>> tainted_at_;  // by zone
  std::map<std::string, std::deque<Instant>> acts_;        // by scope
};

}  // namespace spillway::sim
