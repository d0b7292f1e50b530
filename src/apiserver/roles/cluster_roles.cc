#include "apiserver/roles/role_rows.h"

namespace spillway::apiserver {
namespace {

constexpr RuleRow kReviewsTokens{"create", "authentication.k8s.io", "tokenreviews"};
constexpr RuleRow kReviewsAccess{"create", "authorization.k8s.io", "subjectaccessreviews"};

const std::vector<RuleRow>& view_rules() {
  static const std::vector<RuleRow> kRules{
      {kRead, "core",
       "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers "
       "replicationcontrollers/scale serviceaccounts services services/status"},
      {kRead, "core",
       "bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status "
       "resourcequotas resourcequotas/status"},
      {kRead, "core", "namespaces"},
      {kRead, "discovery.k8s.io", "endpointslices"},
      {kRead, "apps",
       "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets "
       "replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status"},
      {kRead, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"},
      {kRead, "batch", "cronjobs cronjobs/status jobs jobs/status"},
      {kRead, "extensions",
       "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status "
       "networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale"},
      {kRead, "policy", "poddisruptionbudgets poddisruptionbudgets/status"},
      {kRead, "networking.k8s.io", "ingresses ingresses/status networkpolicies"}};
  return kRules;
}

const std::vector<RuleRow>& edit_rules() {
  static const std::vector<RuleRow> kRules{
      {kRead, "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"},
      {"impersonate", "core", "serviceaccounts"},
      {kWrite, "core", "pods pods/attach pods/exec pods/portforward pods/proxy"},
      {"create", "core", "pods/eviction"},
      {kWrite, "core",
       "configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "
       "serviceaccounts services services/proxy"},
      {"create", "core", "serviceaccounts/token"},
      {kWrite, "apps",
       "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets "
       "statefulsets/scale"},
      {kWrite, "autoscaling", "horizontalpodautoscalers"},
      {kWrite, "batch", "cronjobs jobs"},
      {kWrite, "extensions",
       "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets "
       "replicasets/scale replicationcontrollers/scale"},
      {kWrite, "policy", "poddisruptionbudgets"},
      {kWrite, "networking.k8s.io", "ingresses networkpolicies"},
      {kReadWrite, "coordination.k8s.io", "leases"}};
  return kRules;
}

const std::vector<RuleRow>& node_rules() {
  static const std::vector<RuleRow> kRules{
      kReviewsTokens,
      {"create", "authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews"},
      {kRead, "core", "services"},
      {"create get list watch", "core", "nodes"},
      {"patch update", "core", "nodes/status"},
      {"patch update", "core", "nodes"},
      {"create patch update", "core", "events"},
      {kRead, "core", "pods"},
      {"create delete", "core", "pods"},
      {"patch update", "core", "pods/status"},
      {"create", "core", "pods/eviction"},
      {kRead, "core", "configmaps secrets"},
      {"get", "core", "persistentvolumeclaims persistentvolumes"},
      {"get", "core", "endpoints"},
      {"create get list watch", "certificates.k8s.io", "certificatesigningrequests"},
      {"create delete get patch update", "coordination.k8s.io", "leases"},
      {"get", "storage.k8s.io", "volumeattachments"},
      {"create", "core", "serviceaccounts/token"},
      {"get patch update", "core", "persistentvolumeclaims/status"},
      {kRead, "storage.k8s.io", "csidrivers"},
      {"create delete get patch update", "storage.k8s.io", "csinodes"},
      {kRead, "node.k8s.io", "runtimeclasses"}};
  return kRules;
}

const std::vector<RuleRow>& controller_manager_rules() {
  static const std::vector<RuleRow> kRules{kWritesEvents,
                                           {"create", "coordination.k8s.io", "leases"},
                                           {"get update", "coordination.k8s.io", "leases", "kube-controller-manager"},
                                           {"create", "core", "secrets serviceaccounts"},
                                           {"delete", "core", "secrets"},
                                           {"get", "core", "configmaps namespaces secrets serviceaccounts"},
                                           {"update", "core", "secrets serviceaccounts"},
                                           kReviewsTokens,
                                           kReviewsAccess,
                                           {"list watch", "*", "*"},
                                           {"create", "core", "serviceaccounts/token"}};
  return kRules;
}

const std::vector<RuleRow>& scheduler_rules() {
  static const std::vector<RuleRow> kRules{kWritesEvents,
                                           {"create", "coordination.k8s.io", "leases"},
                                           {"get list update watch", "coordination.k8s.io", "leases", "kube-scheduler"},
                                           {kReadWrite, "coordination.k8s.io", "leasecandidates"},
                                           {kRead, "core", "nodes"},
                                           {"delete get list watch", "core", "pods"},
                                           {"create", "core", "bindings pods/binding"},
                                           {"patch update", "core", "pods/status"},
                                           {kRead, "core", "replicationcontrollers services"},
                                           {kRead, "apps extensions", "replicasets"},
                                           {kRead, "apps", "statefulsets"},
                                           {kRead, "policy", "poddisruptionbudgets"},
                                           {kRead, "core", "persistentvolumeclaims persistentvolumes"},
                                           kReviewsTokens,
                                           kReviewsAccess,
                                           {kRead, "storage.k8s.io", "csinodes"},
                                           {kRead, "storage.k8s.io", "volumeattachments"},
                                           {kRead, "core", "namespaces"},
                                           {kRead, "storage.k8s.io", "csidrivers"},
                                           {kRead, "storage.k8s.io", "csistoragecapacities"}};
  return kRules;
}

RuleRow approves(std::string_view signer) {
  return {"approve", "certificates.k8s.io", "signers", signer};
}

}  // namespace

std::span<const RoleRow> cluster_role_rows() {
  static const std::vector<RoleRow> kRows{
      {"cluster-admin", {{"*", "*", "*"}, {"*", "", "*"}}},
      {.name = "admin", .rules = {}, .gathers = "admin"},
      {.name = "edit", .rules = {}, .adds_to = "admin", .gathers = "edit"},
      {.name = "view", .rules = {}, .adds_to = "edit", .gathers = "view"},
      {.name = "system:aggregate-to-admin",
       .rules = {{"create", "authorization.k8s.io", "localsubjectaccessreviews"},
                 {kReadWrite, "rbac.authorization.k8s.io", "rolebindings roles"}},
       .adds_to = "admin"},
      {.name = "system:aggregate-to-edit", .rules = edit_rules(), .adds_to = "edit"},
      {.name = "system:aggregate-to-view", .rules = view_rules(), .adds_to = "view"},
      {"system:auth-delegator", {kReviewsTokens, kReviewsAccess}},
      {"system:basic-user",
       {{"create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"},
        {"create", "authentication.k8s.io", "selfsubjectreviews"}}},
      {"system:certificates.k8s.io:certificatesigningrequests:nodeclient",
       {{"create", "certificates.k8s.io", "certificatesigningrequests/nodeclient"}}},
      {"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
       {{"create", "certificates.k8s.io", "certificatesigningrequests/selfnodeclient"}}},
      {"system:certificates.k8s.io:kube-apiserver-client-approver", {approves("kubernetes.io/kube-apiserver-client")}},
      {"system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
       {approves("kubernetes.io/kube-apiserver-client-kubelet")}},
      {"system:certificates.k8s.io:kubelet-serving-approver", {approves("kubernetes.io/kubelet-serving")}},
      {"system:certificates.k8s.io:legacy-unknown-approver", {approves("kubernetes.io/legacy-unknown")}},
      {"system:discovery",
       {{"get", "", "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"}}},
      {"system:heapster", {{kRead, "core", "events namespaces nodes pods"}, {kRead, "extensions", "deployments"}}},
      {"system:kube-aggregator", {{kRead, "core", "endpoints services"}}},
      {"system:kube-controller-manager", controller_manager_rules()},
      {"system:kube-dns", {{"list watch", "core", "endpoints services"}}},
      {"system:kube-scheduler", scheduler_rules()},
      {"system:kubelet-api-admin",
       {{kRead, "core", "nodes"},
        {"proxy", "core", "nodes"},
        {"*", "core", "nodes/log nodes/metrics nodes/proxy nodes/stats"}}},
      {"system:monitoring",
       {{"get", "", "/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"}}},
      {"system:node", node_rules()},
      {"system:node-bootstrapper", {{"create get list watch", "certificates.k8s.io", "certificatesigningrequests"}}},
      {"system:node-problem-detector", {{"get", "core", "nodes"}, {"patch", "core", "nodes/status"}, kWritesEvents}},
      {"system:node-proxier",
       {{"list watch", "core", "endpoints services"},
        {kRead, "core", "nodes"},
        kWritesEvents,
        {"list watch", "discovery.k8s.io", "endpointslices"}}},
      {"system:persistent-volume-provisioner",
       {{"create delete get list watch", "core", "persistentvolumes"},
        {"get list update watch", "core", "persistentvolumeclaims"},
        {kRead, "storage.k8s.io", "storageclasses"},
        {"watch", "core", "events"},
        kWritesEvents}},
      {"system:public-info-viewer", {{"get", "", "/healthz /livez /readyz /version /version/"}}},
      {"system:service-account-issuer-discovery",
       {{"get", "",
         "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/"}}},
      {"system:volume-scheduler",
       {{"get list patch update watch", "core", "persistentvolumes"},
        {kRead, "storage.k8s.io", "storageclasses"},
        {"get list patch update watch", "core", "persistentvolumeclaims"}}}};
  return kRows;
}

std::span<const BindingRow> cluster_binding_rows() {
  // The node authorizer decides about nodes: no subject is bound to `system:node`.
  static const std::vector<BindingRow> kRows{
      {.name = "cluster-admin", .role = "cluster-admin", .groups = "system:masters"},
      {.name = "system:basic-user", .role = "system:basic-user", .groups = "system:authenticated"},
      {.name = "system:discovery", .role = "system:discovery", .groups = "system:authenticated"},
      {.name = "system:kube-controller-manager",
       .role = "system:kube-controller-manager",
       .users = "system:kube-controller-manager"},
      {.name = "system:kube-dns", .role = "system:kube-dns", .accounts = "kube-dns"},
      {.name = "system:kube-scheduler", .role = "system:kube-scheduler", .users = "system:kube-scheduler"},
      {.name = "system:monitoring", .role = "system:monitoring", .groups = "system:monitoring"},
      {.name = "system:node", .role = "system:node"},
      {.name = "system:node-proxier", .role = "system:node-proxier", .users = "system:kube-proxy"},
      {.name = "system:public-info-viewer",
       .role = "system:public-info-viewer",
       .groups = "system:authenticated system:unauthenticated"},
      {.name = "system:service-account-issuer-discovery",
       .role = "system:service-account-issuer-discovery",
       .groups = "system:serviceaccounts"},
      {.name = "system:volume-scheduler", .role = "system:volume-scheduler", .users = "system:kube-scheduler"}};
  return kRows;
}

}  // namespace spillway::apiserver
