// The pods of the node with the agent's state of each, by uid: what the parts that run them share.
// Thread: loop (plain values). Bounds: pods bound to this node.
#pragma once

#include "agent/pod_state/pod_worker.h"
#include "api/object/pod.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spillway::agent {

class PodTable {
 public:
  /// Finds the entry of the pod, or adds one.
  PodWorker& add(const std::string& uid) { return workers_[uid]; }

  void erase(const std::string& uid) { workers_.erase(uid); }

  /// nullptr: unknown.
  PodWorker* find(const std::string& uid);
  const PodWorker* find(const std::string& uid) const;
  /// nullptr unless it is in kSyncing.
  PodWorker* find_syncing(const std::string& uid);
  /// The pod if it still waits to be admitted; null: it is gone or ending.
  std::shared_ptr<const api::Pod> find_waiting(const std::string& uid) const;

  /// True also for an unknown uid.
  bool is_finished(const std::string& uid) const;
  /// Pods that were admitted and are not finished, in namespace/name order. Valid until the next event.
  std::vector<const api::Pod*> active() const;
  /// All pods with the status that the agent reports, in namespace/name order.
  std::vector<api::Pod> all() const;
  /// All entries, in namespace/name order.
  std::vector<const PodWorker*> sorted() const;

 private:
  std::map<std::string, PodWorker> workers_;  // by uid
};

}  // namespace spillway::agent
