// The cluster's state for rules about other pods: the pods on each node, labels of namespaces, selectors of Services
// and owners, and promised nodes. Pods with equal namespace, labels and terms are counted together as one sort, so that
// a query costs as much as there are sorts of pods.
// Thread: one. Bounds: what the cluster holds. Source: Kubernetes docs, "Assigning Pods to Nodes", "Pod Topology Spread
// Constraints".
#pragma once

#include "api/object/kind_id.h"
#include "api/object/pod.h"
#include "api/object/selector.h"
#include "policy/scheduling/pod_terms.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace spillway::scheduling {

/// A number for each node in the counts: small, and reused after the node is removed.
using Slot = std::uint32_t;

/// The number of pods on each node that has any, in order of their slots: few bytes each, and read from end to end.
class SlotCounts {
 public:
  struct Here {
    Slot slot = 0;
    std::uint32_t pods = 0;
  };

  void add(Slot slot);
  /// Removes the counts of a node.
  void erase(Slot slot);

  bool empty() const { return here_.empty(); }

  auto begin() const { return here_.begin(); }

  auto end() const { return here_.end(); }

 private:
  std::vector<Here> here_;
};

struct PodSort {
  std::string ns;
  api::StringMap labels;
  PodTerms terms;
  bool terminating = false;  // deletion has begun
  SlotCounts count;
};

class Surroundings {
 public:
  Surroundings() = default;
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;
  Surroundings(Surroundings&&) = default;
  Surroundings& operator=(Surroundings&&) = default;
  ~Surroundings() = default;

  /// Counts one more pod on a node.
  void add(const std::string& node, const api::Pod& pod);
  /// Removes all pods of a node.
  void clear(const std::string& node);
  /// Clears the node as clear() does, and frees its slot.
  void forget(const std::string& node);

  /// nullopt: the namespace was deleted.
  void set_namespace(const std::string& name, std::optional<api::StringMap> labels);
  /// `selector` empty: the Service selects no pod, or was deleted.
  void set_service(const std::string& ns, const std::string& name, api::StringMap selector);
  /// The selector of a ReplicationController, ReplicaSet or StatefulSet; nullopt: it is gone.
  void set_owner(const api::KindId& kind, const std::string& ns, const std::string& name,
                 std::optional<api::LabelSelector> selector);
  /// The pod has no node yet and is promised one; by uid. An empty node: it is not. Returns the node that it was
  /// promised before; empty: none.
  std::string nominate(const std::string& node, const std::shared_ptr<const api::Pod>& pod);

  /// nullptr: unknown.
  const api::StringMap* labels_of(const std::string& ns) const;
  /// The joint selector of the Services and the owner that select a pod; nullopt: there are none.
  std::optional<api::LabelSelector> selector_for(const api::Pod& pod) const;
  /// The pods that are promised the node, with at least the priority of `to`, without `to` itself.
  std::vector<const api::Pod*> promised(const std::string& node, const api::Pod& to) const;

  /// The pods that are promised the node, with a lower priority than `than`.
  std::vector<std::shared_ptr<const api::Pod>> promised_below(const std::string& node, const api::Pod& than) const;

  bool has_promises() const { return !promised_.empty(); }

  /// The number of a node, which gets one if it has none.
  Slot slot_of(const std::string& node);
  /// nullopt: the node has no number.
  std::optional<Slot> find_slot(const std::string& node) const;

  /// Visit sorts of pods, in order: those with affinity or anti-affinity terms, all, those of a namespace.
  void each_with_terms(const std::function<void(const PodSort&)>& visit) const;
  void each(const std::function<void(const PodSort&)>& visit) const;
  void each_in(const std::string& ns, const std::function<void(const PodSort&)>& visit) const;

 private:
  using SortKey = std::tuple<std::string, api::StringMap, std::string, bool>;       // namespace, labels, terms, leaving
  using OwnerKey = std::tuple<std::string, std::string, std::string, std::string>;  // group, kind, namespace, name
  using Sorts = std::map<SortKey, PodSort, std::less<>>;

  struct ByKey {
    bool operator()(Sorts::const_iterator a, Sorts::const_iterator b) const { return a->first < b->first; }
  };

  Sorts sorts_;
  std::set<Sorts::const_iterator, ByKey> asking_;
  std::map<std::string, Slot> slots_;
  std::vector<Slot> free_slots_;
  std::vector<std::vector<Sorts::iterator>> on_node_;  // by slot; each sort once
  std::map<std::string, api::StringMap> namespaces_;
  std::map<std::string, std::map<std::string, api::StringMap>> services_;  // by namespace and name
  std::map<OwnerKey, api::LabelSelector> owners_;
  std::map<std::string, std::map<std::string, std::shared_ptr<const api::Pod>>> promised_;  // by node and uid
};

}  // namespace spillway::scheduling
