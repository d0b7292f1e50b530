#include "apiserver/collect/bootstrap_roles.h"

#include "api/text/identities.h"

#include <string_view>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using Texts = std::vector<std::string_view>;

constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
const Texts kRead{"get", "list", "watch"};
const Texts kWrite{"create", "delete", "deletecollection", "patch", "update"};
const Texts kAll{"*"};

Json list(const Texts& texts) {
  return Json::Array(texts.begin(), texts.end());
}

Json rule(const Texts& verbs, const Texts& groups, const Texts& resources) {
  return Json::object({{"verbs", list(verbs)}, {"apiGroups", list(groups)}, {"resources", list(resources)}});
}

Json path_rule(const Texts& verbs, const Texts& urls) {
  return Json::object({{"verbs", list(verbs)}, {"nonResourceURLs", list(urls)}});
}

Json metadata(std::string_view name) {
  return Json::object({{"name", name},
                       {"labels", Json::object({{"kubernetes.io/bootstrapping", "rbac-defaults"}})},
                       {"annotations", Json::object({{"rbac.authorization.kubernetes.io/autoupdate", "true"}})}});
}

Json role(std::string_view name, Json::Array rules) {
  return Json::object({{"apiVersion", "rbac.authorization.k8s.io/v1"},
                       {"kind", "ClusterRole"},
                       {"metadata", metadata(name)},
                       {"rules", std::move(rules)}});
}

Json binding(std::string_view name, std::string_view role, const Texts& groups) {
  Json::Array subjects;
  for (const std::string_view group : groups) {
    subjects.push_back(Json::object({{"apiGroup", kRbac}, {"kind", "Group"}, {"name", group}}));
  }
  return Json::object({{"apiVersion", "rbac.authorization.k8s.io/v1"},
                       {"kind", "ClusterRoleBinding"},
                       {"metadata", metadata(name)},
                       {"roleRef", Json::object({{"apiGroup", kRbac}, {"kind", "ClusterRole"}, {"name", role}})},
                       {"subjects", std::move(subjects)}});
}

/// Of the role of the same name.
Json binding(std::string_view name, const Texts& groups) {
  return binding(name, name, groups);
}

Json user_binding(std::string_view role, std::string_view user) {
  return Json::object(
      {{"apiVersion", "rbac.authorization.k8s.io/v1"},
       {"kind", "ClusterRoleBinding"},
       {"metadata", metadata(role)},
       {"roleRef", Json::object({{"apiGroup", kRbac}, {"kind", "ClusterRole"}, {"name", role}})},
       {"subjects", Json::array({Json::object({{"apiGroup", kRbac}, {"kind", "User"}, {"name", user}})})}});
}

/// Its own leases: whoever holds one acts.
Json lock_rule(Json::Array leases) {
  Json out = rule({"get", "update"}, {"coordination.k8s.io"}, {"leases"});
  out["resourceNames"] = Json(std::move(leases));
  return out;
}

/// What the controllers of this process do, and no more: no Secrets, no roles, no tokens.
Json::Array controller_rules() {
  return {rule({"get", "list", "watch", "patch", "delete"}, {""}, {"nodes"}),
          rule({"patch"}, {""}, {"nodes/status", "pods/status"}),
          rule({"get", "list", "watch", "create", "patch", "delete"}, {""}, {"pods"}),
          rule({"create"}, {""}, {"pods/eviction"}),
          rule({"get", "list", "watch", "patch"}, {""}, {"persistentvolumeclaims", "persistentvolumes"}),
          rule({"create"}, {""}, {"persistentvolumeclaims"}),
          rule({"patch"}, {""}, {"persistentvolumeclaims/status", "persistentvolumes/status"}),
          rule({"get"}, {""}, {"configmaps"}),  // the manual hold: a flag names it
          rule({"create", "patch"}, {""}, {"events"}), rule(kRead, {""}, {"replicationcontrollers", "services"}),
          rule({"patch"}, {""}, {"replicationcontrollers/status"}),
          rule({"get", "list", "watch", "create", "update", "delete"}, {""}, {"endpoints"}),
          rule({"get", "list", "watch", "create", "update", "delete"}, {"discovery.k8s.io"}, {"endpointslices"}),
          rule(kRead, {"apps"}, {"daemonsets", "deployments", "statefulsets"}),
          rule({"get", "list", "watch", "create", "patch", "delete"}, {"apps"}, {"controllerrevisions", "replicasets"}),
          rule({"patch"}, {"apps"},
               {"daemonsets/status", "deployments/status", "replicasets/status", "statefulsets/status"}),
          // Autoscalers: what they scale, and what they measure.
          rule(kRead, {"autoscaling"}, {"horizontalpodautoscalers"}),
          rule({"patch"}, {"autoscaling"}, {"horizontalpodautoscalers/status"}),
          rule({"get", "update"}, {"apps"}, {"deployments/scale", "replicasets/scale", "statefulsets/scale"}),
          rule({"get", "update"}, {""}, {"replicationcontrollers/scale"}), rule({"list"}, {"metrics.k8s.io"}, {"pods"}),
          rule({"get", "list"}, {"custom.metrics.k8s.io", "external.metrics.k8s.io"}, {"*"}),
          rule(kRead, {"batch"}, {"cronjobs"}), rule({"get", "list", "watch", "create", "delete"}, {"batch"}, {"jobs"}),
          rule({"patch"}, {"batch"}, {"cronjobs/status", "jobs/status"}),
          rule(kRead, {"policy"}, {"poddisruptionbudgets"}), rule(kRead, {"storage.k8s.io"}, {"storageclasses"}),
          rule({"get", "list", "watch", "create"}, {"coordination.k8s.io"}, {"leases"}),  // heartbeats; its own
          lock_rule({"spillway-controller"})};
}

Json::Array scheduler_rules() {
  return {rule(kRead, {""}, {"namespaces", "nodes", "pods", "services"}),
          rule(kRead, {"apps"}, {"replicasets", "statefulsets"}),
          rule({"create"}, {""}, {"pods/binding"}),
          rule({"delete"}, {""}, {"pods"}),  // who leaves for a more important one
          rule({"patch"}, {""}, {"pods/status"}),
          rule(kRead, {"policy"}, {"poddisruptionbudgets"}),
          rule({"get", "list", "watch", "patch"}, {""}, {"persistentvolumeclaims", "persistentvolumes"}),
          rule({"create", "patch"}, {""}, {"events"}),
          rule(kRead, {"storage.k8s.io"}, {"storageclasses"}),
          rule({"create"}, {"coordination.k8s.io"}, {"leases"}),
          lock_rule({"spillway-scheduler", "kube-scheduler"})};
}

/// How a machine becomes a node: it asks for a certificate with a bootstrap token of this group, which is that of
/// kubeadm's tokens, and later renews it as the node it is.
Json::Array node_bootstrap() {
  constexpr std::string_view kBootstrapper = "system:node-bootstrapper";
  constexpr std::string_view kFirst = "system:certificates.k8s.io:certificatesigningrequests:nodeclient";
  constexpr std::string_view kRenewed = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient";
  constexpr std::string_view kTokens = "system:bootstrappers:kubeadm:default-node-token";
  return {role(kBootstrapper,
               {rule({"create", "get", "list", "watch"}, {"certificates.k8s.io"}, {"certificatesigningrequests"})}),
          role(kFirst, {rule({"create"}, {"certificates.k8s.io"}, {"certificatesigningrequests/nodeclient"})}),
          role(kRenewed, {rule({"create"}, {"certificates.k8s.io"}, {"certificatesigningrequests/selfnodeclient"})}),
          binding("spillway:node-bootstrap", kBootstrapper, {kTokens}),
          binding("spillway:node-autoapprove-bootstrap", kFirst, {kTokens}),
          binding("spillway:node-autoapprove-certificate-rotation", kRenewed, {"system:nodes"})};
}

/// What `view` shows: everything of a namespace but its secrets and roles.
Json::Array view_rules() {
  return {rule(kRead, {""},
               {"configmaps", "endpoints", "events", "limitranges", "namespaces", "namespaces/status",
                "persistentvolumeclaims", "persistentvolumeclaims/status", "pods", "pods/log", "pods/status",
                "resourcequotas", "resourcequotas/status", "serviceaccounts", "services", "services/status"}),
          rule(kRead, {"apps"},
               {"controllerrevisions", "daemonsets", "daemonsets/status", "deployments", "deployments/scale",
                "deployments/status", "replicasets", "replicasets/scale", "replicasets/status", "statefulsets",
                "statefulsets/scale", "statefulsets/status"}),
          rule(kRead, {"autoscaling"}, {"horizontalpodautoscalers", "horizontalpodautoscalers/status"}),
          rule(kRead, {"batch"}, {"cronjobs", "cronjobs/status", "jobs", "jobs/status"}),
          rule(kRead, {"discovery.k8s.io"}, {"endpointslices"}),
          rule(kRead, {"policy"}, {"poddisruptionbudgets", "poddisruptionbudgets/status"}),
          rule(kRead, {"events.k8s.io"}, {"events"})};
}

Json::Array edit_rules() {
  Json::Array rules = view_rules();
  rules.push_back(rule(kRead, {""}, {"secrets"}));
  rules.push_back(
      rule(kWrite, {""},
           {"configmaps", "events", "persistentvolumeclaims", "pods", "secrets", "serviceaccounts", "services"}));
  rules.push_back(rule({"create"}, {""}, {"pods/eviction", "serviceaccounts/token"}));
  rules.push_back(rule(kRead, {""}, {"pods/attach", "pods/exec", "pods/portforward"}));
  rules.push_back(rule(kWrite, {""}, {"pods/attach", "pods/exec", "pods/portforward"}));
  rules.push_back(rule(kWrite, {"apps"},
                       {"daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale",
                        "statefulsets", "statefulsets/scale"}));
  rules.push_back(rule(kWrite, {"autoscaling"}, {"horizontalpodautoscalers"}));
  rules.push_back(rule(kWrite, {"batch"}, {"cronjobs", "jobs"}));
  rules.push_back(rule(kWrite, {"policy"}, {"poddisruptionbudgets"}));
  rules.push_back(rule({"get", "list", "watch", "create", "delete", "deletecollection", "patch", "update"},
                       {"coordination.k8s.io"}, {"leases"}));
  return rules;
}

Json::Array admin_rules() {
  Json::Array rules = edit_rules();
  rules.push_back(rule({"get", "list", "watch", "create", "delete", "deletecollection", "patch", "update"}, {kRbac},
                       {"roles", "rolebindings"}));
  rules.push_back(rule({"create"}, {"authorization.k8s.io"}, {"localsubjectaccessreviews"}));
  return rules;
}

}  // namespace

std::vector<Json> bootstrap_roles() {
  std::vector<Json> roles{
      role("cluster-admin", {rule(kAll, kAll, kAll), path_rule(kAll, kAll)}),
      role("system:discovery", {path_rule({"get"}, {"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez",
                                                    "/openapi", "/openapi/*", "/readyz", "/version", "/version/"})}),
      role("system:public-info-viewer",
           {path_rule({"get"}, {"/healthz", "/livez", "/readyz", "/version", "/version/"})}),
      role("system:monitoring", {path_rule({"get"}, {"/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics",
                                                     "/metrics/slis", "/readyz", "/readyz/*"})}),
      role("system:basic-user",
           {rule({"create"}, {"authorization.k8s.io"}, {"selfsubjectaccessreviews", "selfsubjectrulesreviews"}),
            rule({"create"}, {"authentication.k8s.io"}, {"selfsubjectreviews"})}),
      // The API server on its way to agents: what their servers ask about, and nothing of the API.
      role("spillway:kubelet-client",
           {rule({"get", "create"}, {""}, {"nodes/log", "nodes/metrics", "nodes/proxy", "nodes/stats"})}),
      role("view", view_rules()), role("edit", edit_rules()), role("admin", admin_rules()),
      binding("cluster-admin", {"system:masters"}), binding("spillway:kubelet-client", {"spillway:kubelet-clients"}),
      binding("system:discovery", {"system:authenticated"}),
      binding("system:public-info-viewer", {"system:authenticated", "system:unauthenticated"}),
      binding("system:monitoring", {"system:monitoring"}), binding("system:basic-user", {"system:authenticated"})};
  for (Json& one : node_bootstrap()) roles.push_back(std::move(one));
  roles.push_back(role(api::kControllerManagerUser, controller_rules()));
  roles.push_back(role(api::kSchedulerUser, scheduler_rules()));
  for (const std::string_view user : {api::kControllerManagerUser, api::kSchedulerUser}) {
    roles.push_back(user_binding(user, user));
  }
  return roles;
}

}  // namespace spillway::apiserver
