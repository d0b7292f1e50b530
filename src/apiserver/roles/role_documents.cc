#include "apiserver/roles/role_documents.h"

#include "apiserver/roles/aggregation.h"
#include "apiserver/roles/role_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kRoleGroup = "rbac.authorization.k8s.io";

/// The members of a text of members, one space between two.
Json::Array members(std::string_view text) {
  Json::Array out;
  while (!text.empty()) {
    const std::string_view member = text.substr(0, text.find(' '));
    out.emplace_back(member);
    text.remove_prefix(std::min(text.size(), member.size() + 1));
  }
  return out;
}

Json rule_document(const RuleRow& row) {
  Json rule = Json::object({{"verbs", members(row.verbs)}});
  if (row.groups.empty()) {
    rule["nonResourceURLs"] = members(row.resources);
    return rule;
  }
  Json::Array groups = members(row.groups);
  for (Json& group : groups) {
    if (group.string_at({}) == "core") group = "";
  }
  rule["apiGroups"] = std::move(groups);
  rule["resources"] = members(row.resources);
  if (!row.names.empty()) rule["resourceNames"] = members(row.names);
  return rule;
}

std::string label_of(std::string_view gatherer) {
  return fmt::format("rbac.authorization.k8s.io/aggregate-to-{}", gatherer);
}

Json document(std::string_view kind, std::string_view name, std::string_view ns) {
  Json metadata =
      Json::object({{"name", name},
                    {"labels", Json::object({{"kubernetes.io/bootstrapping", "rbac-defaults"}})},
                    {"annotations", Json::object({{"rbac.authorization.kubernetes.io/autoupdate", "true"}})}});
  if (!ns.empty()) metadata["namespace"] = ns;
  return Json::object({{"apiVersion", fmt::format("{}/v1", kRoleGroup)},
                       {"kind", ns.empty() ? std::string(kind) : std::string(kind).substr(sizeof("Cluster") - 1)},
                       {"metadata", std::move(metadata)}});
}

Json role_document(const RoleRow& row) {
  Json role = document("ClusterRole", row.name, row.ns);
  if (!row.adds_to.empty()) role["metadata"]["labels"][label_of(row.adds_to)] = "true";
  if (!row.gathers.empty()) {
    role["aggregationRule"] = Json::object(
        {{"clusterRoleSelectors",
          Json::array({Json::object({{"matchLabels", Json::object({{label_of(row.gathers), "true"}})}})})}});
  }
  Json::Array rules;
  for (const RuleRow& rule : row.rules) rules.push_back(rule_document(rule));
  role["rules"] = rules.empty() ? Json() : Json(std::move(rules));
  return role;
}

Json binding_document(const BindingRow& row) {
  Json binding = document("ClusterRoleBinding", row.name, row.ns);
  binding["roleRef"] =
      Json::object({{"apiGroup", kRoleGroup}, {"kind", row.ns.empty() ? "ClusterRole" : "Role"}, {"name", row.role}});
  Json::Array subjects;
  for (const auto& [kind, names] : {std::pair("Group", row.groups), std::pair("User", row.users)}) {
    for (const Json& name : members(names)) {
      subjects.push_back(Json::object({{"apiGroup", kRoleGroup}, {"kind", kind}, {"name", name}}));
    }
  }
  for (const Json& name : members(row.accounts)) {
    subjects.push_back(Json::object({{"kind", "ServiceAccount"}, {"name", name}, {"namespace", "kube-system"}}));
  }
  if (!subjects.empty()) binding["subjects"] = std::move(subjects);
  return binding;
}

BindingRow binding_of_controller(const RoleRow& role) {
  return {.name = role.name, .role = role.name, .accounts = role.name.substr(kControllerRolePrefix.size())};
}

/// Copies the rules of aggregated roles, which are before the aggregating ones in `order`.
void gather(std::vector<Json>& roles) {
  for (const std::string_view order : {"view", "edit", "admin"}) {
    for (Json& role : roles) {
      if (role.string_at({"metadata", "name"}) != order) continue;
      role["rules"] = aggregated_rules(role, roles);
    }
  }
}

std::vector<Json> all_documents() {
  std::vector<Json> out;
  for (const auto& rows : {cluster_role_rows(), controller_role_rows(), own_role_rows()}) {
    for (const RoleRow& row : rows) out.push_back(role_document(row));
  }
  gather(out);
  for (const RoleRow& row : controller_role_rows()) out.push_back(binding_document(binding_of_controller(row)));
  for (const auto& rows : {cluster_binding_rows(), own_binding_rows()}) {
    for (const BindingRow& row : rows) out.push_back(binding_document(row));
  }
  for (const RoleRow& row : namespaced_role_rows()) out.push_back(role_document(row));
  for (const BindingRow& row : namespaced_binding_rows()) out.push_back(binding_document(row));
  return out;
}

}  // namespace

const std::vector<Json>& bootstrap_roles() {
  static const std::vector<Json> kAll = all_documents();
  return kAll;
}

}  // namespace spillway::apiserver
