// Roles and role bindings, cluster-wide and in a namespace.
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/tables.h"

#include <array>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
constexpr std::array<std::string_view, 2> kRoleKinds{"ClusterRole", "Role"};
constexpr std::array<std::string_view, 1> kClusterRoleKinds{"ClusterRole"};
constexpr std::array<std::string_view, 3> kSubjectKinds{"Group", "ServiceAccount", "User"};

/// An empty list is no list.
void default_role(api::Json& role) {
  if (const api::Json::Array* rules = elements(role, "rules"); rules != nullptr && rules->empty()) {
    role["rules"] = api::Json();
  }
}

void validate_role(const api::Json& role, api::FieldErrors& errors) {
  const api::Json::Array& rules = elements(role, "rules");
  const bool namespaced = text(role, "kind") == "Role";
  for (std::size_t i = 0; i < rules.size() && !errors.full(); ++i) {
    const std::string path = api::index_path("rules", i);
    if (elements(rules[i], "verbs").empty()) errors.required(path + ".verbs", "verbs must contain at least one value");
    if (!elements(rules[i], "nonResourceURLs").empty()) {
      if (namespaced)
        errors.invalid(path + ".nonResourceURLs", rules[i], "namespaced rules cannot apply to non-resource URLs");
      continue;
    }
    if (elements(rules[i], "apiGroups").empty()) {
      errors.required(path + ".apiGroups", "resource rules must supply at least one api group");
    }
    if (elements(rules[i], "resources").empty()) {
      errors.required(path + ".resources", "resource rules must supply at least one resource");
    }
  }
}

void default_binding(api::Json& binding) {
  if (api::Json* role = binding.find("roleRef"); role != nullptr && role->is_object())
    set_default(*role, "apiGroup", kGroup);
  if (api::Json::Array* subjects = elements(binding, "subjects")) {
    for (api::Json& subject : *subjects) {
      if (text(subject, "kind") == "User" || text(subject, "kind") == "Group") set_default(subject, "apiGroup", kGroup);
    }
  }
}

void validate_binding(const api::Json& binding, api::FieldErrors& errors) {
  const bool namespaced = text(binding, "kind") == "RoleBinding";
  const api::Json& role = value_of(binding, "roleRef");
  const std::span<const std::string_view> kinds =
      namespaced ? std::span<const std::string_view>(kRoleKinds) : std::span<const std::string_view>(kClusterRoleKinds);
  if (text(role, "kind").empty()) {
    errors.not_supported("roleRef.kind", "", kinds);
  } else {
    require_one_of(role, "kind", "roleRef.kind", kinds, errors);
  }
  if (text(role, "name").empty()) errors.required("roleRef.name");
  const api::Json::Array& subjects = elements(binding, "subjects");
  for (std::size_t i = 0; i < subjects.size() && !errors.full(); ++i) {
    const std::string path = api::index_path("subjects", i);
    if (text(subjects[i], "name").empty()) errors.required(path + ".name");
    require_one_of(subjects[i], "kind", path + ".kind", kSubjectKinds, errors);
    if (text(subjects[i], "kind") == "ServiceAccount" && text(subjects[i], "namespace").empty() && !namespaced) {
      errors.required(path + ".namespace");
    }
  }
}

void validate_binding_update(const api::Json& binding, const api::Json& old, Endpoint, api::FieldErrors& errors) {
  validate_binding(binding, errors);
  if (!(value_of(binding, "roleRef") == value_of(old, "roleRef"))) {
    errors.invalid("roleRef", value_of(binding, "roleRef"), "cannot change roleRef");
  }
}

}  // namespace

KindHooks role_hooks() {
  const TableDefinition table = role_table();
  return {
      .set_defaults = default_role, .validate_create = validate_role, .columns = table.columns, .table_row = table.row};
}

KindHooks role_binding_hooks() {
  const TableDefinition table = role_binding_table();
  return {.set_defaults = default_binding,
          .validate_create = validate_binding,
          .validate_update = validate_binding_update,
          .columns = table.columns,
          .table_row = table.row};
}

}  // namespace spillway::apiserver::kinds
