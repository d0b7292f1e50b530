// The zones in use: their states, their counts of ready and other nodes, and the nodes of each that wait behind its
// limiter. Counts are kept as nodes change; an evaluation costs one step per zone.
// Thread: any (a value). Bound: one zone per zone key that a node has. Source: spec "Node lifecycle", S6; vectors
// lifecycle/disruption_traces.
#pragma once

#include "base/time.h"
#include "policy/lifecycle/profile.h"
#include "policy/lifecycle/rate_limited_queue.h"
#include "policy/lifecycle/zone.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::lifecycle {

class ZoneTable {
 public:
  struct Zone {
    std::optional<ZoneState> state;  // nullopt: no counted node was seen in the last pass
    ZoneCounts counts;
    RateLimitedQueue queue;
  };

  using Zones = std::map<std::string, Zone, std::less<>>;

  struct Change {
    std::string zone;
    std::optional<ZoneState> before;
    ZoneState after{};
    ZoneCounts counts;
    float rate = 0;  // nodes per second from now on
  };

  struct Evaluation {
    bool entered_master_disruption = false;
    bool left_master_disruption = false;
    bool master_disruption = false;  // afterwards: every zone is in full disruption, nothing is evicted
    std::vector<Change> changes;
  };

  ZoneTable(ZoneConfig config, const Profile& profile) : config_(config), profile_(profile) {}

  const Zones& all() const { return zones_; }

  Zones& all() { return zones_; }

  Zone* find(std::string_view key);
  /// A zone without a state starts over: Initial, and a queue of its own behind a full bucket.
  Zone& open(const std::string& key, Now now);
  /// Opens the zones that have nodes and no state.
  void reopen(Now now);

  /// Puts a node into this zone until it leaves it. Returns the key, whose address stays valid as long as a node is in.
  const std::string* join(const std::string& key);
  void release(const std::string& key);

  /// Called after the nodes of a pass were counted: states, rates, and whether all of them are disrupted.
  Evaluation evaluate(Now now);

 private:
  bool drop_vanished();
  void apply(const std::string& key, Zone& zone, ZoneState state, Evaluation& evaluation, Now now);

  ZoneConfig config_;
  const Profile& profile_;
  Zones zones_;
  std::map<std::string, std::int64_t> nodes_;  // known nodes by zone key, counted or not
};

}  // namespace spillway::lifecycle
