#include "sim/properties/property.h"

#include <array>
#include <cstddef>

namespace spillway::sim {
namespace {

constexpr std::array<PropertyInfo, 18> kProperties = {{
    {Property::kTaintRate, "taint-rate", "Node",
     "A zone's nodes get NoExecute taints of silence no faster than its eviction rate allows.",
     "spec node-lifecycle; e2e-eviction, promises"},
    {Property::kActLimits, "act-limits", "Node",
     "Nodes marked Unknown, taints of silence and deletions for them stay within the limits of the brakes.",
     "spec node-lifecycle, S19; e2e-eviction, promises"},
    {Property::kProtectedPods, "protected-pods", "Pod",
     "No critical pod is evicted, and none within its request or of higher priority while another running pod clearly "
     "is "
     "not.",
     "spec eviction-manager, 7; e2e-eviction, promises"},
    {Property::kJournalFirst, "journal-first", "Pod",
     "No pod is reported Evicted by its node without a line in that node's journal written before.",
     "spec e2e-eviction, promises"},
    {Property::kEvictionsResume, "evictions-resume", "Pod",
     "An agent finishes across crashes an eviction that it has begun. It neither starts that pod again nor decides on "
     "it twice. Until that pod has ended, it evicts no other pod for the same shortage.",
     "spec e2e-eviction, promises"},
    {Property::kAcknowledgedWrites, "acknowledged-writes", "Store",
     "Every write that was acknowledged can be read through every server, and what was refused is not done.",
     "spec etcd-store, 4.8, 5.1"},
    {Property::kWatchesWhole, "watches-whole", "Watch",
     "A watch delivers every change once and in order: no gap, no repeat, no step back.",
     "spec e2e-eviction, promises; etcd-store, 4.8"},
    {Property::kBudgetsKept, "budgets-kept", "Pod",
     "An eviction through the API leaves as many healthy pods as their budget demands.",
     "spec api-server; Kubernetes, Disruptions"},
    {Property::kRolloutAvailability, "rollout-availability", "Deployment",
     "No rollout leaves a Deployment fewer available pods than its strategy promises, but for those lost to others.",
     "spec scheduler-workloads, 12; Kubernetes, Deployments"},
    {Property::kOneMachine, "one-machine", "Pod", "No pod runs on two machines, and none that is bound moves.",
     "spec node-agent; Kubernetes, Pod Lifecycle"},
    {Property::kPodsEndOnce, "pods-end-once", "Pod",
     "No uid comes back, no final phase is left, no phase, restart count or deletion goes back.",
     "spec pod-lifecycle; Kubernetes, Pod Lifecycle"},
    {Property::kNewerStatus, "newer-status", "Node",
     "No lease and no condition of a node is overwritten by an older one.", "spec node-agent; node-lifecycle"},
    {Property::kNoSurplus, "no-surplus", "ReplicaSet",
     "No ReplicaSet keeps more active pods than its replicas; where nothing gets lost, not even for a moment. "
     "Pods that are replaced before they are deleted do not count, while their node has failed.",
     "spec scheduler-workloads; Kubernetes, ReplicaSet"},
    {Property::kTaintsGo, "taints-go", "Node", "No Ready node keeps a NoExecute taint of silence.",
     "spec node-lifecycle"},
    {Property::kOneActingServer, "one-acting-server", "Server", "Of the servers of one store at most one acts for all.",
     "spec etcd-store; ADR-0017"},
    {Property::kNoSharedAddress, "no-shared-address", "Service", "No two services have the same address or node port.",
     "spec api-server; ADR-0017"},
    {Property::kNamespacesEmpty, "namespaces-empty", "Namespace", "A deleted namespace is empty.", "spec api-server"},
    {Property::kReachesRest, "comes-to-rest", "Cluster",
     "Once everything is healed, nodes are ready and untainted, workloads have their replicas and what was deleted "
     "is "
     "gone, within a bound.",
     "spec e2e-eviction, promises; style, Testing"},
}};

}  // namespace

std::span<const PropertyInfo> all_properties() {
  return kProperties;
}

std::string_view name_of(Property property) {
  return kProperties[static_cast<std::size_t>(property)].name;
}

Violated violated(Property property) {
  return {property, std::string(kProperties[static_cast<std::size_t>(property)].subject)};
}

std::string collection_of(std::string_view key) {
  const std::size_t registry = key.find('/', 1);
  const std::size_t end = registry == std::string_view::npos ? registry : key.find('/', registry + 1);
  return std::string(end == std::string_view::npos ? key : key.substr(0, end + 1));
}

}  // namespace spillway::sim
