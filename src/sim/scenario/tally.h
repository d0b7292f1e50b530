// Counts events of nodes and pods of a simulated cluster, and decides if all of it is well. Thread: one.
#pragma once

#include "sim/cluster.h"
#include "sim/scenario/outcome.h"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace spillway::sim {

class Tally {
 public:
  /// Observes `cluster` from now on; both must live equally long.
  explicit Tally(Cluster& cluster);

  /// Begins to record events; their times count from now.
  void begin();

  /// An event has ended: recovery before it does not count.
  void disturb();

  /// Writes into the outcome the happenings, and the time when all was well again.
  void finish(RunOutcome& outcome) const;

  /// A node that is marked Unknown calls this, once.
  void on_first_unknown(std::function<void()> call) { first_unknown_ = std::move(call); }

 private:
  struct NodeState {
    bool ready = false;
    bool tainted = false;
  };

  void on_node(const std::string& name);
  void on_pod(const std::string& ns, const std::string& name, bool there);
  void on_replica_set(const std::string& key);
  void on_deployment(const std::string& key);
  void record(HappeningKind kind, const api::Pod& pod, std::string reason);
  void happen(Happening happening);
  void update_well_since();
  Duration since_beginning() const;

  Cluster& cluster_;
  std::optional<Instant> began_;
  std::map<std::string, NodeState> nodes_;
  std::uint64_t tainted_ = 0;
  std::set<std::string> deleted_;                          // uids
  std::set<std::string> evicted_;                          // uids
  std::set<std::string> unplaced_;                         // uids that were once without a node to go to
  std::set<std::pair<std::string, std::int32_t>> killed_;  // uid/container and restart
  std::set<std::string> unwell_;  // "node node-1", "pod default/web-1", "replicaset default/web"
  std::optional<Instant> well_since_;
  Instant disturbed_at_{};
  std::function<void()> first_unknown_;
  RunOutcome seen_;
};

}  // namespace spillway::sim
