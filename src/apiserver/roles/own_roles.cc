#include "api/text/dns_identity.h"
#include "api/text/identities.h"
#include "apiserver/roles/role_rows.h"

namespace spillway::apiserver {
namespace {

/// The rules of this project's controllers, and no more: no Secrets, no roles, no tokens.
const std::vector<RuleRow>& own_controllers_rules() {
  static const std::vector<RuleRow> kRules{
      {"delete get list patch watch", "core", "nodes"},
      {"patch", "core", "nodes/status pods/status"},
      {"create delete get list patch watch", "core", "pods"},
      {"create", "core", "pods/eviction"},
      {"get list patch watch", "core", "persistentvolumeclaims persistentvolumes"},
      {"create", "core", "persistentvolumeclaims"},
      {"patch", "core", "persistentvolumeclaims/status persistentvolumes/status"},
      {kRead, "core", "replicationcontrollers"},
      {"patch", "core", "replicationcontrollers/status"},
      {"get", "core", "configmaps"},  // the manual hold: a flag names it
      {"create patch", "core", "events"},
      {kRead, "core", "namespaces services"},
      {"create delete get list update watch", "core", "endpoints"},
      {"create delete get list update watch", "discovery.k8s.io", "endpointslices"},
      {kRead, "apps", "daemonsets deployments statefulsets"},
      {"create delete get list patch watch", "apps", "controllerrevisions replicasets"},
      {"patch", "apps", "daemonsets/status deployments/status replicasets/status statefulsets/status"},
      // Autoscalers: the objects that they scale, and metrics.
      {kRead, "autoscaling", "horizontalpodautoscalers"},
      {"patch", "autoscaling", "horizontalpodautoscalers/status"},
      {"get update", "apps", "deployments/scale replicasets/scale statefulsets/scale"},
      {"get update", "core", "replicationcontrollers/scale"},
      {"list", "metrics.k8s.io", "pods"},
      {"get list", "custom.metrics.k8s.io external.metrics.k8s.io", "*"},
      {kRead, "batch", "cronjobs"},
      {"create delete get list watch", "batch", "jobs"},
      {"patch", "batch", "cronjobs/status jobs/status"},
      {kRead, "policy", "poddisruptionbudgets"},
      {kRead, "storage.k8s.io", "storageclasses"},
      {"create get list watch", "coordination.k8s.io", "leases"},  // reads heartbeats; creates its own lease
      {"get update", "coordination.k8s.io", "leases", "spillway-controller"}};
  return kRules;
}

const std::vector<RuleRow>& own_scheduler_rules() {
  static const std::vector<RuleRow> kRules{
      {kRead, "core", "namespaces nodes pods replicationcontrollers services"},
      {kRead, "apps", "replicasets statefulsets"},
      {"create", "core", "pods/binding"},
      {"delete", "core", "pods"},  // victims of preemption
      {"patch", "core", "pods/status"},
      {kRead, "policy", "poddisruptionbudgets"},
      {"get list patch watch", "core", "persistentvolumeclaims persistentvolumes"},
      {"create patch", "core", "events"},
      {kRead, "storage.k8s.io", "csinodes storageclasses volumeattachments"},
      {"create", "coordination.k8s.io", "leases"},
      {"get update", "coordination.k8s.io", "leases", "kube-scheduler spillway-scheduler"}};
  return kRules;
}

/// The DNS server: the objects that have names. The Service by which it is found is in a role of its namespace.
const std::vector<RuleRow>& own_dns_rules() {
  static const std::vector<RuleRow> kRules{{"list watch", "core", "namespaces pods services"},
                                           {"list watch", "discovery.k8s.io", "endpointslices"}};
  return kRules;
}

/// The provisioner of the class local-path.
const std::vector<RuleRow>& local_storage_rules() {
  static const std::vector<RuleRow> kRules{{"list watch", "core", "persistentvolumeclaims"},
                                           {"create delete list watch", "core", "persistentvolumes"},
                                           {"create patch", "core", "events"},
                                           {"create get list watch", "storage.k8s.io", "storageclasses"}};
  return kRules;
}

/// Gives Services of type LoadBalancer their addresses.
const std::vector<RuleRow>& load_balancer_rules() {
  static const std::vector<RuleRow> kRules{
      {"list watch", "core", "services"}, {"patch", "core", "services/status"}, {"create patch", "core", "events"}};
  return kRules;
}

/// kubeadm's tokens have this group.
constexpr std::string_view kTokens = "system:bootstrappers:kubeadm:default-node-token";

}  // namespace

std::span<const RoleRow> own_role_rows() {
  static const std::vector<RoleRow> kRows{
      // The API server as a client of agents: the rights that their servers check, and none in the API.
      {"spillway:kubelet-client", {{"create get", "core", "nodes/log nodes/metrics nodes/proxy nodes/stats"}}},
      {api::kOwnControllersUser, own_controllers_rules()},
      {api::kDnsUser, own_dns_rules()},
      {api::kLoadBalancerUser, load_balancer_rules()},
      {api::kLocalStorageUser, local_storage_rules()},
      {api::kOwnSchedulerUser, own_scheduler_rules()}};
  return kRows;
}

std::span<const BindingRow> own_binding_rows() {
  // Our processes may show certificates of kube-controller-manager's and kube-scheduler's names.
  static const std::vector<BindingRow> kRows{
      {.name = "spillway:kubelet-client", .role = "spillway:kubelet-client", .groups = "spillway:kubelet-clients"},
      {.name = api::kOwnControllersUser,
       .role = api::kOwnControllersUser,
       .users = "spillway:controllers system:kube-controller-manager"},
      {.name = api::kDnsUser, .role = api::kDnsUser, .users = api::kDnsUser},
      {.name = api::kLoadBalancerUser, .role = api::kLoadBalancerUser, .users = api::kLoadBalancerUser},
      {.name = api::kLocalStorageUser, .role = api::kLocalStorageUser, .users = api::kLocalStorageUser},
      {.name = api::kOwnSchedulerUser,
       .role = api::kOwnSchedulerUser,
       .users = "spillway:scheduler system:kube-scheduler"},
      // The rights with which a machine becomes a node: it requests a certificate with a bootstrap token, then renews
      // it.
      {.name = "spillway:node-bootstrap", .role = "system:node-bootstrapper", .groups = kTokens},
      {.name = "spillway:node-autoapprove-bootstrap",
       .role = "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
       .groups = kTokens},
      {.name = "spillway:node-autoapprove-certificate-rotation",
       .role = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
       .groups = "system:nodes"}};
  return kRows;
}

}  // namespace spillway::apiserver
