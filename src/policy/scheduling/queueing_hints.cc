#include "policy/scheduling/queueing_hints.h"

#include "policy/scheduling/filter.h"
#include "policy/scheduling/pending_pod.h"
#include "policy/scheduling/pod_terms.h"

#include <algorithm>

namespace spillway::scheduling {

namespace {

using Kind = ClusterChange::Kind;
using Why = QueueingHint::Why;

bool grew(const policy::Amounts& before, const policy::Amounts& after) {
  const bool plain = after.milli_cpu > before.milli_cpu || after.memory_bytes > before.memory_bytes ||
                     after.ephemeral_storage_bytes > before.ephemeral_storage_bytes;
  return plain || std::ranges::any_of(after.scalars, [&before](const auto& each) {
           const auto was = before.scalars.find(each.first);
           return each.second > (was == before.scalars.end() ? 0 : was->second);
         });
}

ClusterChange::Aspects aspects_of(const policy::NodeLoad& before, const policy::NodeLoad& after) {
  const api::Node& was = *before.node;
  const api::Node& is = *after.node;
  ClusterChange::Aspects aspects;
  aspects.allocatable_grew = grew(before.allocatable, after.allocatable) || after.pods_max > before.pods_max;
  aspects.labels = was.metadata.labels != is.metadata.labels;
  aspects.taints = was.spec.taints != is.spec.taints || was.spec.unschedulable != is.spec.unschedulable;
  aspects.features = was.status.declared_features != is.status.declared_features;
  aspects.conditions =
      !std::ranges::equal(was.status.conditions, is.status.conditions, [](const auto& one, const auto& other) {
        return one.type == other.type && one.status == other.status;  // times of transitions do not matter
      });
  return aspects;
}

/// The answers of the plug-ins, for one pod and one change.
class Hinter {
 public:
  Hinter(const RefusedPod& refused, const ClusterChange& change, const Surroundings& around)
      : refused_(refused), change_(change), around_(around) {}

  QueueingHint ask(Filter filter) const {
    switch (filter) {
      case Filter::kNodeUnschedulable:
      case Filter::kTaintToleration:
        return by_node(filter, change_.aspects().taints);
      case Filter::kNodeName:
        return by_node(filter, false);
      case Filter::kNodeAffinity:
        return by_node(filter, change_.aspects().labels);
      case Filter::kNodeDeclaredFeatures:
        return by_node(filter, change_.aspects().features);
      case Filter::kNodePorts:
        return by_ports();
      case Filter::kNodeResourcesFit:
        return by_resources();
      case Filter::kVolumeRestrictions:
      case Filter::kNodeVolumeLimits:
      case Filter::kVolumeBinding:
      case Filter::kVolumeZone:
        return by_volumes(filter);
      case Filter::kPodTopologySpread:
        return by_spread();
      case Filter::kInterPodAffinity:
        return by_terms();
      case Filter::kCheckNodeCondition:
      case Filter::kCheckNodeMemoryPressure:
      case Filter::kCheckNodePidPressure:
      case Filter::kCheckNodeDiskPressure:
        return by_node_at_all(filter, change_.aspects().conditions, Why::kNodeMayTakeIt);
      case Filter::kExtender:
        return yes(filter, Why::kOutsiderDecides);
    }
    return yes(filter, Why::kOutsiderDecides);
  }

  /// The filter by which the pod's nominated node refuses it from now on, even after evictions there: the pod may
  /// preempt on another node. A deleted node has no name any more. nullopt: the nomination is still valid.
  std::optional<Filter> breaks_promise() const {
    const policy::NodeLoad* before = change_.node_before();
    if (before == nullptr || before->node->metadata.name != pod().status.nominated_node_name) return std::nullopt;
    if (change_.kind() == Kind::kNodeDelete) return Filter::kNodeName;
    for (const Filter filter :
         {Filter::kNodeUnschedulable, Filter::kTaintToleration, Filter::kNodeAffinity, Filter::kNodeResourcesFit}) {
      if (node_refuses(filter, *change_.node_after()) && !node_refuses(filter, *before)) return filter;
    }
    return std::nullopt;
  }

 private:
  static QueueingHint yes(Filter filter, Why why) { return {true, why, filter}; }

  static QueueingHint no(Filter filter, Why why) { return {false, why, filter}; }

  const api::Pod& pod() const { return *refused_.pending.pod; }

  bool node_refuses(Filter filter, const policy::NodeLoad& node) const {
    return refuses_by(filter, refused_.pending, node);
  }

  /// The hint of a filter that reads only the node. `concerned`: the update changed what the filter reads.
  QueueingHint by_node(Filter filter, bool concerned) const {
    if (change_.kind() != Kind::kNodeAdd && !(change_.kind() == Kind::kNodeUpdate && concerned)) {
      return no(filter, Why::kNotAffected);
    }
    if (node_refuses(filter, *change_.node_after())) return no(filter, Why::kNodeStillRefuses);
    const bool took_it = change_.kind() == Kind::kNodeUpdate && !node_refuses(filter, *change_.node_before());
    return took_it ? no(filter, Why::kNotAffected) : yes(filter, Why::kNodeMayTakeIt);
  }

  QueueingHint by_node_at_all(Filter filter, bool concerned, Why why) const {
    const bool matters = change_.kind() == Kind::kNodeAdd || (change_.kind() == Kind::kNodeUpdate && concerned);
    return matters ? yes(filter, why) : no(filter, Why::kNotAffected);
  }

  QueueingHint by_ports() const {
    constexpr Filter kWho = Filter::kNodePorts;
    if (change_.kind() == Kind::kNodeAdd) return yes(kWho, Why::kNodeMayTakeIt);
    if (change_.kind() != Kind::kPodDelete) return no(kWho, Why::kNotAffected);
    api::UsedHostPorts freed;
    freed.add(change_.pod_before()->spec);
    return freed.conflicts_with(pod().spec) ? yes(kWho, Why::kPortsFreed) : no(kWho, Why::kOtherPorts);
  }

  QueueingHint by_resources() const {
    constexpr Filter kWho = Filter::kNodeResourcesFit;
    const bool node_grew = change_.kind() == Kind::kNodeUpdate && change_.aspects().allocatable_grew;
    const bool by_pods = change_.kind() == Kind::kPodDelete || change_.requests_shrank();
    if (change_.kind() != Kind::kNodeAdd && !node_grew && !by_pods) return no(kWho, Why::kNotAffected);
    const policy::NodeLoad* node = change_.node_after();
    if (node != nullptr && node_refuses(kWho, *node)) return no(kWho, Why::kNodeTooSmall);
    return yes(kWho, by_pods ? Why::kRoomMade : Why::kNodeMayTakeIt);
  }

  QueueingHint by_volumes(Filter filter) const {
    if (change_.kind() == Kind::kPodDelete) return yes(filter, Why::kVolumesFreed);
    // The node's end may have freed a ReadWriteOncePod claim that a pod on it used.
    const bool with_node = change_.kind() == Kind::kNodeDelete && filter == Filter::kVolumeRestrictions;
    if (with_node) return yes(filter, Why::kVolumesFreed);
    return by_node_at_all(filter, change_.aspects().labels, Why::kNodeMayTakeIt);
  }

  bool moves_domains() const {
    const auto& aspects = change_.aspects();
    return change_.kind() == Kind::kNodeAdd || change_.kind() == Kind::kNodeDelete ||
           (change_.kind() == Kind::kNodeUpdate && (aspects.labels || aspects.taints));
  }

  QueueingHint by_spread() const {
    constexpr Filter kWho = Filter::kPodTopologySpread;
    if (moves_domains()) return yes(kWho, Why::kOthersMoved);
    if (change_.kind() == Kind::kOwner) {
      const api::Json::Array* own = pod().spec.topology_spread.if_array();
      const bool by_owner = (own == nullptr || own->empty()) && refused_.pending.profile->default_constraints;
      return by_owner ? yes(kWho, Why::kOthersMoved) : no(kWho, Why::kNotAffected);
    }
    const api::Pod* other = change_.pod_after() != nullptr ? change_.pod_after() : change_.pod_before();
    if (other == nullptr) return no(kWho, Why::kNotAffected);
    return other->metadata.ns == pod().metadata.ns ? yes(kWho, Why::kOthersMoved) : no(kWho, Why::kOtherPods);
  }

  bool any_matches(const std::vector<PodTerm>& terms, const api::Pod& pod) const {
    return std::ranges::any_of(terms, [&](const PodTerm& term) {
      return term.matches(pod.metadata.ns, around_.labels_of(pod.metadata.ns), pod.metadata.labels);
    });
  }

  QueueingHint by_terms() const {
    constexpr Filter kWho = Filter::kInterPodAffinity;
    if (moves_domains() || change_.kind() == Kind::kNamespace) return yes(kWho, Why::kOthersMoved);
    if (change_.pod_before() == nullptr && change_.pod_after() == nullptr) return no(kWho, Why::kNotAffected);
    const PodTerms terms = pod_terms_of(pod());
    const api::Pod* after = change_.pod_after();
    if (after != nullptr && any_matches(terms.required, *after)) return yes(kWho, Why::kOthersMoved);
    const api::Pod* before = change_.pod_before();
    if (before == nullptr) return no(kWho, Why::kOtherPods);
    // The last pod of its group may have gone: then the refused one may be the first.
    const bool matters = any_matches(terms.anti_required, *before) || any_matches(terms.required, *before) ||
                         any_matches(pod_terms_of(*before).anti_required, pod());
    return matters ? yes(kWho, Why::kOthersMoved) : no(kWho, Why::kOtherPods);
  }

  const RefusedPod& refused_;
  const ClusterChange& change_;
  const Surroundings& around_;
};

}  // namespace

std::optional<ClusterChange> ClusterChange::of_node(const NodePtr& before, const NodePtr& after) {
  ClusterChange change(before == nullptr ? Kind::kNodeAdd : after == nullptr ? Kind::kNodeDelete : Kind::kNodeUpdate);
  if (before) change.node_before_.emplace(before);
  if (after) change.node_after_.emplace(after);
  if (before && after) {
    change.aspects_ = aspects_of(*change.node_before_, *change.node_after_);
    if (!change.aspects_.any()) return std::nullopt;
  }
  return change;
}

ClusterChange ClusterChange::pod_added(const api::Pod& pod) {
  ClusterChange change(Kind::kPodAdd);
  change.pod_after_ = &pod;
  return change;
}

ClusterChange ClusterChange::pod_changed(const api::Pod& before, const api::Pod& after, const NodePtr& node) {
  ClusterChange change(Kind::kPodUpdate);
  change.pod_before_ = &before;
  change.pod_after_ = &after;
  change.requests_shrank_ = grew(policy::load_of(after).requested, policy::load_of(before).requested);
  if (node) change.node_after_.emplace(node);
  return change;
}

ClusterChange ClusterChange::pod_removed(const api::Pod& pod, const NodePtr& node) {
  ClusterChange change(Kind::kPodDelete);
  change.pod_before_ = &pod;
  if (node) change.node_after_.emplace(node);
  return change;
}

std::string_view ClusterChange::label() const {
  switch (kind_) {
    case Kind::kNodeAdd:
      return "NodeAdd";
    case Kind::kNodeUpdate:
      if (aspects_.allocatable_grew) return "NodeUpdateNodeAllocatable";
      if (aspects_.labels) return "NodeUpdateNodeLabel";
      if (aspects_.taints) return "NodeUpdateNodeTaint";
      return aspects_.features ? "NodeUpdateNodeDeclaredFeature" : "NodeUpdateNodeCondition";
    case Kind::kNodeDelete:
      return "NodeDelete";
    case Kind::kPodAdd:
      return "AssignedPodAdd";
    case Kind::kPodUpdate:
      return "AssignedPodUpdate";
    case Kind::kPodDelete:
      return "AssignedPodDelete";
    case Kind::kNamespace:
      return "NamespaceUpdate";
    case Kind::kOwner:
      return "OwnerUpdate";
  }
  return {};
}

std::string_view to_string(QueueingHint::Why why) {
  switch (why) {
    case Why::kPluginsUnknown:
      return "no user known";
    case Why::kNodeMayTakeIt:
      return "node may take it";
    case Why::kRoomMade:
      return "room made";
    case Why::kPortsFreed:
      return "ports freed";
    case Why::kOthersMoved:
      return "others moved";
    case Why::kVolumesFreed:
      return "volumes freed";
    case Why::kOutsiderDecides:
      return "outsider decides";
    case Why::kPromiseBroken:
      return "promise broken";
    case Why::kNotAffected:
      return "not affected";
    case Why::kNodeStillRefuses:
      return "node still refuses";
    case Why::kNodeTooSmall:
      return "node too small";
    case Why::kOtherPorts:
      return "other ports";
    case Why::kOtherPods:
      return "other pods";
  }
  return {};
}

QueueingHint hint_for(const RefusedPod& refused, const ClusterChange& change, const Surroundings& around,
                      HintWatch watch) {
  if (refused.by == FilterSet()) return {true, Why::kPluginsUnknown, {}};
  const Hinter hinter(refused, change, around);
  if (const auto filter = hinter.breaks_promise()) return {true, Why::kPromiseBroken, filter};
  QueueingHint last;
  for (const Filter filter : kFilters) {
    if (!refused.by.contains(filter)) continue;
    last = hinter.ask(filter);
    if (watch) watch(filter, last.queue);
    if (last.queue) return last;
  }
  return last;
}

}  // namespace spillway::scheduling
