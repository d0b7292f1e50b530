// Which kind has which hooks: the one place where kinds register.
#include "apiserver/kind_hooks.h"
#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/pod.h"

#include <map>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

const KindHooks& kind_hooks(std::string_view group, std::string_view kind) {
  static const KindHooks kNeutral{};
  static const std::map<std::pair<std::string_view, std::string_view>, KindHooks> kTable{
      {{"", "ConfigMap"}, kinds::config_map_hooks()},
      {{"", "Event"}, kinds::event_hooks()},
      {{"", "Namespace"}, kinds::namespace_hooks()},
      {{"", "Node"}, kinds::node_hooks()},
      {{"", "Pod"}, kinds::pod_hooks()},
      {{"", "Secret"}, kinds::secret_hooks()},
      {{"", "Service"}, kinds::service_hooks()},
      {{"", "ServiceAccount"}, kinds::service_account_hooks()},
      {{"apps", "DaemonSet"}, kinds::daemon_set_hooks()},
      {{"apps", "Deployment"}, kinds::deployment_hooks()},
      {{"apps", "ReplicaSet"}, kinds::replica_set_hooks()},
      {{"certificates.k8s.io", "CertificateSigningRequest"}, kinds::certificate_signing_request_hooks()},
      {{"coordination.k8s.io", "Lease"}, kinds::lease_hooks()},
      {{"events.k8s.io", "Event"}, kinds::event_hooks()},
      {{"node.k8s.io", "RuntimeClass"}, kinds::runtime_class_hooks()},
      {{"policy", "PodDisruptionBudget"}, kinds::pod_disruption_budget_hooks()},
      {{"rbac.authorization.k8s.io", "ClusterRole"}, kinds::role_hooks()},
      {{"rbac.authorization.k8s.io", "ClusterRoleBinding"}, kinds::role_binding_hooks()},
      {{"rbac.authorization.k8s.io", "Role"}, kinds::role_hooks()},
      {{"rbac.authorization.k8s.io", "RoleBinding"}, kinds::role_binding_hooks()},
      {{"scheduling.k8s.io", "PriorityClass"}, kinds::priority_class_hooks()},
      {{"storage.k8s.io", "CSINode"}, kinds::csi_node_hooks()}};
  const auto found = kTable.find({group, kind});
  return found == kTable.end() ? kNeutral : found->second;
}

}  // namespace spillway::apiserver
