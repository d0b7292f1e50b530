// Pods of failed nodes are replaced before they are deleted: requests the replacement (the mark of
// policy/workloads/replacement_first.h), reports until when the pod stays, and removes the mark when the node is
// healthy again. Its state is on the pods: after a crash the next process resumes from there.
// Thread: loop. Bounds: one entry per pod of a ReplicaSet, and per mark on its way; the removal of a mark is retried
// every five seconds while the node is healthy. A mark that cannot be written (no permission, a webhook) holds its pod
// no longer than kReplacementPatience.
// Metric: spillway_pod_replacements_total{outcome}.
#pragma once

#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "policy/lifecycle/profile.h"
#include "policy/reason.h"
#include "policy/workloads/replacement_first.h"
#include "telemetry/metrics.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {

class ReplacementOrder {
 public:
  ReplacementOrder(Shared shared, const lifecycle::LineFacts& facts, telemetry::Registry& metrics);
  ReplacementOrder(const ReplacementOrder&) = delete;
  ReplacementOrder& operator=(const ReplacementOrder&) = delete;

  /// Called once the caches are filled: removes marks that are no longer wanted.
  void start();

  /// True if this pod is replaced before it is deleted: a pod of a ReplicaSet on a node that carries a not-ready or
  /// unreachable taint.
  bool concerns(const api::Pod& pod) const;
  /// True if the pod has the mark, or a write of it is under way.
  bool is_asked(const api::Pod& pod) const;
  /// Requests the replacement: marks the pod. The caller has checked that its replacement has room.
  void ask(const PodPtr& pod, Now now);
  /// The obstacle to deleting a marked pod. nullopt: it may be deleted.
  std::optional<policy::Reason> find_obstacle(const api::Pod& pod, Now now) const;
  /// Called before the pod is deleted.
  void on_let_go(const api::Pod& pod, Now now);

  /// The taints of a node have changed.
  void on_node(const std::vector<PodPtr>& pods);

  /// Marked pods whose replacements have no node yet, by priority: the room they need is taken.
  std::vector<PodPtr> promised(Now now);

 private:
  /// A ReplicaSet with pods that are being replaced.
  struct SetState {
    workloads::ReplicaStanding others;
    std::vector<workloads::ReplacedPod> replaced;
  };

  void on_pod(const PodPtr& before, const PodPtr& after);
  std::optional<SetState> state_of(const std::string& owner_uid, Now now) const;
  bool is_failed(const std::string& node) const;
  void on_marked(const api::Pod& pod, const Result<api::Json>& outcome, Now now);
  void on_refused(const api::Pod& pod, const Error& error);
  void take_back_if_well(const PodPtr& pod);
  void on_taken_back(const api::Pod& pod, const Result<api::Json>& outcome, Now now);
  void count(std::string_view outcome);

  Shared shared_;
  lifecycle::LineFacts facts_;
  telemetry::Registry& metrics_;
  OwnedPods pods_;
  std::set<std::string> marked_owners_;  // uids of sets that have, or had, pods that are being replaced

  /// A mark that no pod shows yet.
  struct Asking {
    WallTime since;  // the first try: from then on patience runs, whatever becomes of the mark
    bool on_its_way = false;
    bool refused = false;  // reported once
  };

  std::map<std::string, Asking> asking_;  // by uid of the pod
  std::set<std::string> taking_back_;     // uids of pods
  bool started_ = false;
};

}  // namespace spillway::controllers
