// Roles and bindings that every cluster has: that they are those of Kubernetes 1.32, and what becomes of them over
// restarts of the server.
#include "apiserver/access/role_rules.h"
#include "apiserver/roles/role_documents.h"
#include "apiserver/roles/role_rows.h"
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace spillway::apiserver {

namespace {

const std::string kRoleApi = "/apis/rbac.authorization.k8s.io/v1/";

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  std::istringstream in{std::string(text)};
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

/// "ClusterRole", "kube-system/Role": how many there are, without those of this project.
std::map<std::string, int> counts() {
  std::map<std::string, int> out;
  for (const api::Json& each : bootstrap_roles()) {
    if (each.string_at({"metadata", "name"}).starts_with("spillway:")) continue;
    const std::string_view ns = each.string_at({"metadata", "namespace"});
    ++out[(ns.empty() ? "" : std::string(ns) + "/") + std::string(each.string_at({"kind"}))];
  }
  return out;
}

std::vector<RoleRow> all_role_rows() {
  std::vector<RoleRow> out;
  for (const auto& rows : {cluster_role_rows(), controller_role_rows(), namespaced_role_rows(), own_role_rows()}) {
    out.insert(out.end(), rows.begin(), rows.end());
  }
  return out;
}

const api::Json& find(const std::vector<api::Json>& all, std::string_view kind, std::string_view name) {
  const auto found = std::ranges::find_if(all, [&](const api::Json& each) {
    return each.string_at({"kind"}) == kind && each.string_at({"metadata", "name"}) == name;
  });
  static const api::Json kNone;
  return found == all.end() ? kNone : *found;
}

// Counts by `kubectl get` in a cluster of kube-apiserver 1.32.3 with default feature gates.
TEST(DefaultRoleTable, HasTheRolesAndBindingsOfAStockServer) {
  const std::map<std::string, int> stock{{"ClusterRole", 64},     {"ClusterRoleBinding", 45},
                                         {"kube-public/Role", 1}, {"kube-public/RoleBinding", 1},
                                         {"kube-system/Role", 6}, {"kube-system/RoleBinding", 6}};
  EXPECT_EQ(counts(), stock);
  std::string controllers;
  for (const RoleRow& row : controller_role_rows()) {
    controllers += std::string(row.name.substr(kControllerRolePrefix.size())) + " ";
  }
  EXPECT_EQ(controllers,
            "attachdetach-controller certificate-controller clusterrole-aggregation-controller cronjob-controller "
            "daemon-set-controller deployment-controller disruption-controller endpoint-controller "
            "endpointslice-controller endpointslicemirroring-controller ephemeral-volume-controller expand-controller "
            "generic-garbage-collector horizontal-pod-autoscaler job-controller legacy-service-account-token-cleaner "
            "namespace-controller node-controller persistent-volume-binder pod-garbage-collector "
            "pv-protection-controller pvc-protection-controller replicaset-controller replication-controller "
            "resourcequota-controller root-ca-cert-publisher route-controller service-account-controller "
            "service-controller statefulset-controller ttl-after-finished-controller ttl-controller "
            "validatingadmissionpolicy-status-controller ");
  std::set<std::string> names;
  for (const RoleRow& row : cluster_role_rows()) names.insert(std::string(row.name));
  EXPECT_EQ(names, (std::set<std::string>{"admin",
                                          "cluster-admin",
                                          "edit",
                                          "system:aggregate-to-admin",
                                          "system:aggregate-to-edit",
                                          "system:aggregate-to-view",
                                          "system:auth-delegator",
                                          "system:basic-user",
                                          "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
                                          "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
                                          "system:certificates.k8s.io:kube-apiserver-client-approver",
                                          "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
                                          "system:certificates.k8s.io:kubelet-serving-approver",
                                          "system:certificates.k8s.io:legacy-unknown-approver",
                                          "system:discovery",
                                          "system:heapster",
                                          "system:kube-aggregator",
                                          "system:kube-controller-manager",
                                          "system:kube-dns",
                                          "system:kube-scheduler",
                                          "system:kubelet-api-admin",
                                          "system:monitoring",
                                          "system:node",
                                          "system:node-bootstrapper",
                                          "system:node-problem-detector",
                                          "system:node-proxier",
                                          "system:persistent-volume-provisioner",
                                          "system:public-info-viewer",
                                          "system:service-account-issuer-discovery",
                                          "system:volume-scheduler",
                                          "view"}));
  std::set<std::string> bound;
  for (const BindingRow& row : cluster_binding_rows()) bound.insert(std::string(row.name));
  EXPECT_EQ(bound,
            (std::set<std::string>{
                "cluster-admin", "system:basic-user", "system:discovery", "system:kube-controller-manager",
                "system:kube-dns", "system:kube-scheduler", "system:monitoring", "system:node", "system:node-proxier",
                "system:public-info-viewer", "system:service-account-issuer-discovery", "system:volume-scheduler"}));
}

/// As `kubectl describe clusterrole system:kube-scheduler` shows it in a stock cluster.
TEST(DefaultRoleTable, HasTheSchedulerOfAStockServer) {
  const auto scheduler = std::ranges::find(cluster_role_rows(), "system:kube-scheduler", &RoleRow::name);
  std::multiset<std::string> rules;
  for (const RuleRow& rule : scheduler->rules) {
    for (const std::string& group : words(rule.groups)) {
      for (const std::string& resource : words(rule.resources)) {
        const std::size_t slash = resource.find('/');
        const std::string name = group == "core" ? resource
                                                 : resource.substr(0, slash) + "." + group +
                                                       (slash == std::string::npos ? "" : resource.substr(slash));
        rules.insert(name + " [" + std::string(rule.names) + "] [" + std::string(rule.verbs) + "]");
      }
    }
  }
  const std::multiset<std::string> stock{
      "leasecandidates.coordination.k8s.io [] [create delete deletecollection get list patch update watch]",
      "events [] [create patch update]",
      "events.events.k8s.io [] [create patch update]",
      "bindings [] [create]",
      "pods/binding [] [create]",
      "tokenreviews.authentication.k8s.io [] [create]",
      "subjectaccessreviews.authorization.k8s.io [] [create]",
      "leases.coordination.k8s.io [] [create]",
      "pods [] [delete get list watch]",
      "leases.coordination.k8s.io [kube-scheduler] [get list update watch]",
      "namespaces [] [get list watch]",
      "nodes [] [get list watch]",
      "persistentvolumeclaims [] [get list watch]",
      "persistentvolumes [] [get list watch]",
      "replicationcontrollers [] [get list watch]",
      "services [] [get list watch]",
      "replicasets.apps [] [get list watch]",
      "statefulsets.apps [] [get list watch]",
      "replicasets.extensions [] [get list watch]",
      "poddisruptionbudgets.policy [] [get list watch]",
      "csidrivers.storage.k8s.io [] [get list watch]",
      "csinodes.storage.k8s.io [] [get list watch]",
      "csistoragecapacities.storage.k8s.io [] [get list watch]",
      "volumeattachments.storage.k8s.io [] [get list watch]",
      "pods/status [] [patch update]"};
  EXPECT_EQ(rules, stock);
}

TEST(DefaultRoleTable, HasSortedListsAndRulesThatAreWhole) {
  std::set<std::string> seen;
  for (const RoleRow& row : all_role_rows()) {
    EXPECT_TRUE(seen.insert(std::string(row.ns) + "/" + std::string(row.name)).second) << row.name << " twice";
    EXPECT_EQ(row.rules.empty(), !row.gathers.empty()) << row.name;
    for (const RuleRow& rule : row.rules) {
      EXPECT_FALSE(rule.verbs.empty() || rule.resources.empty()) << row.name;
      for (const std::string_view list : {rule.verbs, rule.groups, rule.resources, rule.names}) {
        const std::vector<std::string> members = words(list);
        EXPECT_TRUE(std::ranges::is_sorted(members)) << row.name << ": " << list;
        EXPECT_EQ(std::ranges::adjacent_find(members), members.end()) << row.name << ": " << list;
      }
      const bool is_path = rule.resources.starts_with('/') || rule.resources == "*";
      EXPECT_TRUE(!rule.groups.empty() || is_path) << row.name << ": a rule for resources has groups";
    }
  }
}

TEST(DefaultRoleTable, BindsRolesThatAreThere) {
  const std::vector<api::Json> all = bootstrap_roles();
  int bindings = 0;
  for (const api::Json& each : all) {
    const api::Json* const role = each.find("roleRef");
    if (role == nullptr) continue;
    ++bindings;
    const api::Json& bound = find(all, role->string_at({"kind"}), role->string_at({"name"}));
    EXPECT_FALSE(bound.is_null()) << api::to_text(each);
  }
  EXPECT_GT(bindings, 50);
}

TEST(DefaultRoleTable, MarksWhatItMakes) {
  for (const api::Json& each : bootstrap_roles()) {
    EXPECT_EQ(each.string_at({"metadata", "labels", "kubernetes.io/bootstrapping"}), "rbac-defaults");
    EXPECT_EQ(each.string_at({"metadata", "annotations", "rbac.authorization.kubernetes.io/autoupdate"}), "true");
  }
  const std::vector<api::Json> all = bootstrap_roles();
  EXPECT_EQ(api::to_text(*find(all, "ClusterRole", "edit").find("metadata")),
            R"({"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"true"},"labels":)"
            R"({"kubernetes.io/bootstrapping":"rbac-defaults","rbac.authorization.k8s.io/aggregate-to-admin":"true"},)"
            R"("name":"edit"})");
  EXPECT_EQ(api::to_text(*find(all, "ClusterRole", "admin").find("aggregationRule")),
            R"({"clusterRoleSelectors":[{"matchLabels":{"rbac.authorization.k8s.io/aggregate-to-admin":"true"}}]})");
  EXPECT_EQ(find(all, "ClusterRoleBinding", "system:node").find("subjects"), nullptr);
  EXPECT_EQ(api::to_text(*find(all, "ClusterRoleBinding", "system:controller:job-controller").find("subjects")),
            R"([{"kind":"ServiceAccount","name":"job-controller","namespace":"kube-system"}])");
}

/// Rules as vectors: some of each kind, whole.
TEST(DefaultRoleTable, SaysWhatStockRolesSay) {
  const std::vector<api::Json> all = bootstrap_roles();
  const auto rules = [&](std::string_view kind, std::string_view name) {
    const api::Json* const found = find(all, kind, name).find("rules");
    return found == nullptr ? std::string() : api::to_text(*found);
  };
  EXPECT_EQ(rules("ClusterRole", "cluster-admin"),
            R"([{"apiGroups":["*"],"resources":["*"],"verbs":["*"]},{"nonResourceURLs":["*"],"verbs":["*"]}])");
  EXPECT_EQ(rules("ClusterRole", "system:node-problem-detector"),
            R"([{"apiGroups":[""],"resources":["nodes"],"verbs":["get"]},)"
            R"({"apiGroups":[""],"resources":["nodes/status"],"verbs":["patch"]},)"
            R"({"apiGroups":["","events.k8s.io"],"resources":["events"],"verbs":["create","patch","update"]}])");
  EXPECT_EQ(rules("ClusterRole", "system:certificates.k8s.io:kubelet-serving-approver"),
            R"([{"apiGroups":["certificates.k8s.io"],"resourceNames":["kubernetes.io/kubelet-serving"],)"
            R"("resources":["signers"],"verbs":["approve"]}])");
  EXPECT_EQ(rules("ClusterRole", "system:controller:clusterrole-aggregation-controller"),
            R"([{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],)"
            R"("verbs":["escalate","get","list","patch","update","watch"]}])");
  EXPECT_EQ(rules("Role", "extension-apiserver-authentication-reader"),
            R"([{"apiGroups":[""],"resourceNames":["extension-apiserver-authentication"],"resources":["configmaps"],)"
            R"("verbs":["get","list","watch"]}])");
}

/// The names of all roles that allow the request anywhere; a Role with its namespace.
std::string who_may(const RequestAttributes& request) {
  std::set<std::string> names;
  for (const api::Json& role : bootstrap_roles()) {
    const api::Json* const rules = role.find("rules");
    if (rules == nullptr || rules->if_array() == nullptr) continue;
    const auto is_allowed = [&](const api::Json& rule) { return allows(rule_from_json(rule), request); };
    if (std::ranges::none_of(*rules->if_array(), is_allowed)) continue;
    const std::string_view ns = role.string_at({"metadata", "namespace"});
    names.insert((ns.empty() ? "" : std::string(ns) + "/") + std::string(role.string_at({"metadata", "name"})));
  }
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : " ") + name;
  return out;
}

RequestAttributes on(const std::string& verb, const std::string& group, const std::string& resource,
                     const std::string& subresource = {}) {
  return {.is_resource = true, .verb = verb, .group = group, .resource = resource, .subresource = subresource};
}

/// The strong rights, over the whole table.
TEST(DefaultRoleTable, GivesStrongRightsToThoseThatHaveThemOnAStockServer) {
  const std::string rbac = "rbac.authorization.k8s.io";
  const std::string editors = "admin cluster-admin edit system:aggregate-to-edit";
  EXPECT_EQ(who_may(on("get", "", "secrets")),
            "admin cluster-admin edit kube-system/system:controller:bootstrap-signer "
            "kube-system/system:controller:token-cleaner system:aggregate-to-edit "
            "system:controller:generic-garbage-collector system:controller:namespace-controller "
            "system:kube-controller-manager system:node");
  EXPECT_EQ(who_may(on("update", "", "secrets")),
            editors + " system:controller:generic-garbage-collector system:kube-controller-manager");
  EXPECT_EQ(who_may(on("create", "", "serviceaccounts", "token")),
            editors + " system:kube-controller-manager system:node");
  EXPECT_EQ(who_may(on("create", "", "pods", "exec")), editors);
  EXPECT_EQ(who_may(on("impersonate", "", "serviceaccounts")), editors);
  EXPECT_EQ(who_may(on("impersonate", "", "users")), "cluster-admin");
  EXPECT_EQ(who_may(on("escalate", rbac, "clusterroles")),
            "cluster-admin system:controller:clusterrole-aggregation-controller");
  EXPECT_EQ(who_may(on("bind", rbac, "clusterroles")), "cluster-admin");
  EXPECT_EQ(who_may(on("create", rbac, "rolebindings")), "admin cluster-admin system:aggregate-to-admin");
  EXPECT_EQ(who_may(on("create", rbac, "clusterrolebindings")), "cluster-admin");
  EXPECT_EQ(who_may(on("approve", "certificates.k8s.io", "signers")), "cluster-admin");  // for every signer
  EXPECT_EQ(who_may(on("create", "", "pods")),
            "admin cluster-admin edit spillway:controllers system:aggregate-to-edit "
            "system:controller:daemon-set-controller system:controller:job-controller "
            "system:controller:persistent-volume-binder system:controller:replicaset-controller "
            "system:controller:replication-controller system:controller:statefulset-controller system:node");
  EXPECT_EQ(who_may(on("create", "", "pods", "binding")),
            "cluster-admin spillway:scheduler system:controller:daemon-set-controller system:kube-scheduler");
  EXPECT_EQ(who_may(on("delete", "", "nodes")),
            "cluster-admin spillway:controllers system:controller:generic-garbage-collector "
            "system:controller:namespace-controller system:controller:node-controller");
  EXPECT_EQ(who_may(on("get", "", "nodes", "proxy")),
            "cluster-admin spillway:kubelet-client system:controller:generic-garbage-collector "
            "system:controller:namespace-controller system:kubelet-api-admin");
  EXPECT_EQ(who_may({.verb = "get", .path = "/metrics"}), "cluster-admin system:monitoring");
}

TEST(DefaultRoleTable, ViewReadsWhatIsNoSecret) {
  for (const api::Json& rule : *find(bootstrap_roles(), "ClusterRole", "view").find("rules")->if_array()) {
    const PolicyRule view = rule_from_json(rule);
    EXPECT_EQ(view.verbs, (std::vector<std::string>{"get", "list", "watch"}));
    for (const std::string& resource : view.resources) {
      EXPECT_FALSE(resource == "*" || resource == "secrets" || resource.contains("exec") || resource.contains("proxy"));
    }
    EXPECT_EQ(std::ranges::find(view.api_groups, "rbac.authorization.k8s.io"), view.api_groups.end());
  }
}

TEST(DefaultRoleTable, GathersWhatIsLabelled) {
  const std::vector<api::Json> all = bootstrap_roles();
  const auto size = [&](std::string_view name) {
    return find(all, "ClusterRole", name).find("rules")->if_array()->size();
  };
  EXPECT_EQ(size("view"), 10U);
  EXPECT_EQ(size("edit"), size("view") + size("system:aggregate-to-edit"));
  EXPECT_EQ(size("admin"), size("edit") + size("system:aggregate-to-admin"));
}

class DefaultRoles : public ::testing::Test {
 protected:
  const std::string kScheduler = kRoleApi + "clusterroles/system:kube-scheduler";
  const std::string kDiscovery = kRoleApi + "clusterrolebindings/system:discovery";
  const std::string kView = kRoleApi + "clusterroles/view";

  /// A member of an object as JSON text.
  std::string member(const std::string& target, std::string_view name) {
    const Answer answer = server.get(target);
    const api::Json* const found = answer.body.find(name);
    return found == nullptr ? std::string() : api::to_text(*found);
  }

  void merge(const std::string& target, const std::string& patch) { ASSERT_EQ(server.merge(target, patch).code, 200); }

  TestServer server;
};

TEST_F(DefaultRoles, AreServed) {
  const auto names = [&](const std::string& target) {
    return server.get(kRoleApi + target).body.find("items")->if_array()->size();
  };
  EXPECT_EQ(names("clusterroles"), 64U + own_role_rows().size());
  EXPECT_EQ(names("clusterrolebindings"), 45U + own_binding_rows().size());
  // Upstream's objects, and one of each sort for the DNS server.
  EXPECT_EQ(names("namespaces/kube-system/roles"), 7U);
  EXPECT_EQ(names("namespaces/kube-system/rolebindings"), 7U);
  EXPECT_EQ(names("namespaces/kube-public/roles"), 1U);
  EXPECT_EQ(names("namespaces/kube-public/rolebindings"), 1U);
}

TEST_F(DefaultRoles, GetBackWhatTheyLackWhenAServerStarts) {
  const std::string rules = member(kScheduler, "rules");
  const std::string subjects = member(kDiscovery, "subjects");
  merge(kScheduler, R"({"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["patch"]}]})");
  merge(kDiscovery, R"({"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"mine"}]})");
  server.restart();
  const std::string whole = member(kScheduler, "rules");
  EXPECT_TRUE(whole.starts_with(R"([{"apiGroups":[""],"resources":["pods"],"verbs":["patch"]},)")) << whole;
  EXPECT_TRUE(whole.ends_with(rules.substr(1))) << whole;
  const std::string both = member(kDiscovery, "subjects");
  EXPECT_TRUE(both.ends_with(subjects.substr(1))) << both;
  EXPECT_NE(both.find("mine"), std::string::npos);
  const std::string version = server.get(kScheduler).string_at({"metadata", "resourceVersion"});
  server.restart();
  EXPECT_EQ(member(kScheduler, "rules"), whole);
  EXPECT_EQ(server.get(kScheduler).string_at({"metadata", "resourceVersion"}), version);
}

TEST_F(DefaultRoles, OfANamespaceGetBackWhatTheyLack) {
  const std::string reader = kRoleApi + "namespaces/kube-system/roles/extension-apiserver-authentication-reader";
  const std::string readers =
      kRoleApi + "namespaces/kube-system/rolebindings/system::extension-apiserver-authentication-reader";
  const std::string rules = member(reader, "rules");
  const std::string subjects = member(readers, "subjects");
  merge(reader, R"({"rules":null})");
  merge(readers, R"({"subjects":null})");
  server.restart();
  EXPECT_EQ(member(reader, "rules"), rules);
  EXPECT_EQ(member(readers, "subjects"), subjects);
}

TEST_F(DefaultRoles, GetBackTheirLabelsAnnotationsAndSelectors) {
  const std::string aggregation = member(kView, "aggregationRule");
  merge(kView, R"({"metadata":{"labels":null,"annotations":null},"aggregationRule":{"clusterRoleSelectors":[)"
               R"({"matchLabels":{"mine":"true"}}]}})");
  server.restart();
  const Answer view = server.get(kView);
  EXPECT_EQ(view.string_at({"metadata", "labels", "rbac.authorization.k8s.io/aggregate-to-edit"}), "true");
  EXPECT_EQ(view.string_at({"metadata", "annotations", "rbac.authorization.kubernetes.io/autoupdate"}), "true");
  const std::string both = member(kView, "aggregationRule");
  EXPECT_NE(both.find("mine"), std::string::npos);
  EXPECT_NE(both.find("aggregate-to-view"), std::string::npos) << aggregation;
  EXPECT_NE(member(kView, "rules").find("configmaps"), std::string::npos);
}

TEST_F(DefaultRoles, KeepALabelWithAnotherValue) {
  merge(kScheduler, R"({"metadata":{"labels":{"kubernetes.io/bootstrapping":"mine"}}})");
  server.restart();
  EXPECT_EQ(server.get(kScheduler).string_at({"metadata", "labels", "kubernetes.io/bootstrapping"}), "mine");
}

TEST_F(DefaultRoles, DoNotGatherRulesWhereTheyShallNot) {
  merge(kScheduler, R"({"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"no":"body"}}]}})");
  EXPECT_EQ(member(kScheduler, "rules"), "null");
  server.restart();
  EXPECT_EQ(member(kScheduler, "aggregationRule"), "");
  EXPECT_NE(member(kScheduler, "rules").find("pods/binding"), std::string::npos);
}

TEST_F(DefaultRoles, ABindingOfAnotherRoleIsMadeAnew) {
  const std::string subjects = member(kDiscovery, "subjects");
  ASSERT_EQ(server.remove(kDiscovery).code, 200);
  ASSERT_EQ(server
                .post(kRoleApi + "clusterrolebindings",
                      R"({"metadata":{"name":"system:discovery"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
                      R"("kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User",)"
                      R"("apiGroup":"rbac.authorization.k8s.io","name":"mine"}]})")
                .code,
            201);
  server.restart();
  EXPECT_EQ(server.get(kDiscovery).string_at({"roleRef", "name"}), "system:discovery");
  EXPECT_EQ(member(kDiscovery, "subjects"), subjects);
}

TEST_F(DefaultRoles, ARuleThatAllowsMoreIsEnough) {
  merge(kScheduler, R"({"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]})");
  server.restart();
  EXPECT_EQ(member(kScheduler, "rules"), R"([{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}])");
}

TEST_F(DefaultRoles, ThatCannotGrowKeepNoServerFromStarting) {
  constexpr std::size_t kObjectMax = 1'572'864;
  const auto rules_of = [](std::size_t length) {
    return R"({"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"],"resourceNames":[")" +
           std::string(length, 'x') + R"("]}]})";
  };
  std::size_t length = kObjectMax;
  while (server.merge(kScheduler, rules_of(length)).code != 200) {
    ASSERT_GT(length, kObjectMax / 2);
    length -= 256;
  }
  const std::string rules = member(kScheduler, "rules");
  server.restart();
  EXPECT_EQ(server.get(kDiscovery).code, 200);
  EXPECT_EQ(member(kScheduler, "rules"), rules);
}

TEST_F(DefaultRoles, AreLeftAloneWhereTheyShallBe) {
  merge(kScheduler,
        R"({"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}},"rules":[]})");
  server.restart();
  EXPECT_EQ(member(kScheduler, "rules").find("pods"), std::string::npos);
}

TEST_F(DefaultRoles, AQuotaOfTheirNamespaceKeepsNoServerFromStarting) {
  const std::string role = kRoleApi + "namespaces/kube-system/roles/system::leader-locking-kube-scheduler";
  ASSERT_EQ(server
                .post("/api/v1/namespaces/kube-system/resourcequotas",
                      R"({"metadata":{"name":"none"},"spec":{"hard":{"count/roles.rbac.authorization.k8s.io":"0"}}})")
                .code,
            201);
  server.advance(seconds(1));
  ASSERT_EQ(server.remove(role).code, 200);
  server.restart();
  EXPECT_EQ(server.get(kDiscovery).code, 200);
  EXPECT_EQ(server.get(role).code, 404);
}

/// A store of a version in which `edit` had all its rules itself: they are in three roles now.
TEST_F(DefaultRoles, WhatEditHasFromOthersIsNotKeptTwice) {
  const std::string part = kRoleApi + "clusterroles/system:aggregate-to-edit";
  const std::string edit = kRoleApi + "clusterroles/edit";
  const std::string rules = member(edit, "rules");
  const std::string own = member(part, "rules");
  ASSERT_EQ(server.remove(part).code, 200);
  merge(edit, R"({"aggregationRule":null})");
  merge(edit, R"({"rules":)" + rules + "}");
  server.restart();
  EXPECT_EQ(member(part, "rules"), own);
  EXPECT_EQ(member(edit, "rules"), rules);
}

/// A store of a version in which `view` had rules of its own, and an administrator had given it more.
TEST_F(DefaultRoles, WhatViewHadBeforeItGatheredRulesIsKept) {
  const std::string part = kRoleApi + "clusterroles/system:aggregate-to-view";
  ASSERT_EQ(server.remove(part).code, 200);
  merge(kView, R"({"aggregationRule":null,"rules":[{"apiGroups":["example.com"],"resources":["things"],)"
               R"("verbs":["get"]},{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]})");
  server.restart();
  EXPECT_NE(member(part, "rules").find("things"), std::string::npos);
  EXPECT_NE(member(part, "rules").find("replicationcontrollers"), std::string::npos);
  EXPECT_EQ(member(kView, "rules"), member(part, "rules"));
  EXPECT_NE(member(kView, "aggregationRule"), "");
}

}  // namespace

}  // namespace spillway::apiserver
