// The true state of a simulated cluster: nodes and pods as the store holds them, seen by the invariants alone.
// Thread: one.
#pragma once

#include "api/object/disruption_budget.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "base/indexed_map.h"
#include "sim/invariants.h"
#include "sim/tenants.h"
#include "sim/time/virtual_time.h"
#include "sim/trace.h"
#include "store/store.h"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::sim {

class World final : public store::Watcher {
 public:
  World(VirtualTime& time, Invariants& invariants) : time_(time), invariants_(invariants), tenants_(invariants) {}

  ~World() override;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Observes every write from now on. The store must outlive this object.
  void follow(store::Store& store);

  void on_changes(const std::vector<store::Change>& changes) override;
  void on_watch_end(const Error& error) override;

  const std::map<api::PodKey, api::Pod>& pods() const { return pods_; }

  const std::map<std::string, api::Node>& nodes() const { return nodes_; }

  /// The ReplicaSets by namespace/name.
  const std::map<std::string, api::ReplicaSet>& replica_sets() const { return replica_sets_; }

  /// The Deployments by namespace/name.
  const std::map<std::string, api::Deployment>& deployments() const { return deployments_; }

  const Tenants& tenants() const { return tenants_; }

  const TraceHash& trace() const { return trace_; }

  /// Called for every change after the invariants have seen it, e.g. to print a trace; listeners in their order.
  void listen(std::function<void(const store::Change&, Now)> listener) { listeners_.push_back(std::move(listener)); }

 private:
  void on_pod(const std::string& name, const store::Change& change);
  void on_node(const std::string& name, const store::Change& change);
  void on_replica_set(const std::string& key, const store::Change& change);
  void on_deployment(const std::string& key, const store::Change& change);
  void on_lease(std::string_view name, const store::Change& change);
  void on_budget(const std::string& key, const store::Change& change);

  /// The checked fields of a lease, and their places in its text.
  struct SeenLease {
    LeaseRenewal renewal;
    std::size_t bytes = 0;  // length of the text; 0: its places are unknown
    std::size_t uid_at = 0;
    std::size_t renewed_at = 0;
  };

  static SeenLease read_lease(std::string_view name, std::string_view text);
  /// Parses a renewed lease that differs in its time alone; nullopt: parse the whole object.
  static std::optional<WallTime> renewal_in_place(const SeenLease& known, std::string_view text);

  /// Name of the node that the object is, or is bound to; empty: none.
  std::string node_of(const store::Change& change) const;

  VirtualTime& time_;
  store::Store* store_ = nullptr;  // null: the owner passes the changes on
  Invariants& invariants_;
  Tenants tenants_;
  store::WatchId watch_ = 0;
  std::map<api::PodKey, api::Pod> pods_;
  std::map<std::string, api::Node> nodes_;
  std::map<std::string, api::ReplicaSet> replica_sets_;
  std::map<std::string, api::Deployment> deployments_;
  IndexedMap<SeenLease> leases_;  // leases of nodes
  std::map<std::string, api::PodDisruptionBudget> budgets_;
  TraceHash trace_;
  std::vector<std::function<void(const store::Change&, Now)>> listeners_;
};

}  // namespace spillway::sim
