// Decides if a change of the cluster may make a refused pod fit, by a hint for each plug-in that refused it. A pod for
// which all hints are negative keeps waiting. A wrong yes costs one attempt; a wrong no would leave the pod waiting
// although it fits, so that in doubt the answer is yes. Thread: any (pure). Complexity: a few comparisons; for terms,
// the terms. Source: Kubernetes docs, "Scheduling Framework", EnqueueExtension and QueueingHint; KEP-4247; spec
// "Scheduler and workloads", 1.
#pragma once

#include "api/object/node.h"
#include "api/object/pod.h"
#include "policy/node_load.h"
#include "policy/scheduling/pending_pod.h"
#include "policy/scheduling/plugins.h"
#include "policy/scheduling/surroundings.h"

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace spillway::scheduling {

/// One change. Its pods are those that count on a node, bound or about to be, or promised one.
class ClusterChange {
 public:
  enum class Kind { kNodeAdd, kNodeUpdate, kNodeDelete, kPodAdd, kPodUpdate, kPodDelete, kNamespace, kOwner };

  /// The aspects of a node that have changed.
  struct Aspects {
    bool allocatable_grew = false;  // for some resource, or for pods
    bool labels = false;
    bool taints = false;      // or spec.unschedulable
    bool conditions = false;  // the statuses of conditions
    bool features = false;    // status.declaredFeatures

    bool any() const { return allocatable_grew || labels || taints || conditions || features; }
  };

  using NodePtr = std::shared_ptr<const api::Node>;

  /// `before` is nullptr for a new node, `after` for a deleted one. nullopt: nothing changed that a plug-in depends on.
  static std::optional<ClusterChange> of_node(const NodePtr& before, const NodePtr& after);
  /// The pods must outlive the change. `node`: the pod's node, nullptr: unknown.
  static ClusterChange pod_added(const api::Pod& pod);
  static ClusterChange pod_changed(const api::Pod& before, const api::Pod& after, const NodePtr& node);
  static ClusterChange pod_removed(const api::Pod& pod, const NodePtr& node);

  /// Labels of a namespace.
  static ClusterChange of_namespace() { return ClusterChange(Kind::kNamespace); }

  /// A change of a Service, or of an owner of pods: its selector.
  static ClusterChange of_owner() { return ClusterChange(Kind::kOwner); }

  Kind kind() const { return kind_; }

  const Aspects& aspects() const { return aspects_; }

  /// nullptr: there was none.
  const api::Pod* pod_before() const { return pod_before_; }

  const api::Pod* pod_after() const { return pod_after_; }

  /// The pod requests less of a resource than before.
  bool requests_shrank() const { return requests_shrank_; }

  /// The node, without pods, before and afterwards; of a change of pods, theirs in both. nullptr: there is none.
  const policy::NodeLoad* node_before() const { return node_before_ ? &*node_before_ : nullptr; }

  const policy::NodeLoad* node_after() const { return node_after_ ? &*node_after_ : nullptr; }

  /// The name in kube-scheduler: "NodeAdd", "NodeUpdateNodeTaint", "AssignedPodDelete". Stable, for metrics.
  std::string_view label() const;

 private:
  explicit ClusterChange(Kind kind) : kind_(kind) {}

  Kind kind_;
  Aspects aspects_;
  const api::Pod* pod_before_ = nullptr;
  const api::Pod* pod_after_ = nullptr;
  bool requests_shrank_ = false;
  std::optional<policy::NodeLoad> node_before_;
  std::optional<policy::NodeLoad> node_after_;
};

struct QueueingHint {
  enum class Why {
    // The pod gets another turn.
    kPluginsUnknown,   // the plug-ins that refused it are unknown
    kNodeMayTakeIt,    // the node is no longer refused by the plug-in's rule
    kRoomMade,         // a pod was removed from its node, or requests less
    kPortsFreed,       // a pod left its node and freed its ports
    kOthersMoved,      // pods or domains that the plug-in counts are others
    kVolumesFreed,     // a pod left its node and freed its volumes
    kOutsiderDecides,  // an extender refused the pod, for unknown reasons
    kPromiseBroken,    // the node promised by preemption is gone, or refuses the pod even without other pods
    // The pod keeps waiting.
    kNotAffected,       // nothing that the plug-ins depend on has changed
    kNodeStillRefuses,  // the node still refuses the pod
    kNodeTooSmall,      // the node is too small for it even without pods
    kOtherPorts,        // the freed ports are not those of the pod
    kOtherPods,         // neither pod's terms match the other
  };

  bool queue = false;
  Why why = Why::kNotAffected;
  /// The plug-in that decided: the first with a positive hint, else the last one; nullopt: there was none.
  std::optional<Filter> by;

  friend bool operator==(const QueueingHint&, const QueueingHint&) = default;
};

/// "room made", "not affected", …: stable, for logs.
std::string_view to_string(QueueingHint::Why why);

/// A pod that waits, and the filters that refused it when it was tried last: on some node each.
struct RefusedPod {
  const PendingPod& pending;
  FilterSet by;
};

/// Called for each plug-in after its hint, with the answer.
using HintWatch = std::move_only_function<void(Filter plugin, bool queues)>;

/// Valid if the change was seen after the pod's last attempt, and hint_for() was called for every change since.
QueueingHint hint_for(const RefusedPod& refused, const ClusterChange& change, const Surroundings& around,
                      HintWatch watch = {});

}  // namespace spillway::scheduling
