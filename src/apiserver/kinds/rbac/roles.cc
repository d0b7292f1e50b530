// Roles and role bindings, cluster-wide and in a namespace.
#include "api/text/names.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/groups.h"
#include "apiserver/kinds/row_parts.h"
#include "apiserver/kinds/tables.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
constexpr std::array<std::string_view, 2> kRoleKinds{"ClusterRole", "Role"};
constexpr std::array<std::string_view, 1> kClusterRoleKinds{"ClusterRole"};
constexpr std::array<std::string_view, 3> kSubjectKinds{"Group", "ServiceAccount", "User"};

/// Stores an empty list as null, as upstream does.
void default_role(api::Json& role) {
  if (const api::Json::Array* rules = elements(role, "rules"); rules != nullptr && rules->empty()) {
    role["rules"] = api::Json();
  }
}

void validate_rule(const api::Json& rule, bool namespaced, const std::string& path, api::FieldErrors& errors) {
  if (elements(rule, "verbs").empty()) errors.required(path + ".verbs", "verbs must contain at least one value");
  const bool names_resources = !elements(rule, "apiGroups").empty() || !elements(rule, "resources").empty() ||
                               !elements(rule, "resourceNames").empty();
  if (!elements(rule, "nonResourceURLs").empty()) {
    const api::Json& urls = value_of(rule, "nonResourceURLs");
    if (namespaced) {
      errors.invalid(path + ".nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs");
    }
    if (names_resources) {
      errors.invalid(path + ".nonResourceURLs", urls,
                     "rules cannot apply to both regular resources and non-resource URLs");
    }
    return;
  }
  if (elements(rule, "apiGroups").empty()) {
    errors.required(path + ".apiGroups", "resource rules must supply at least one api group");
  }
  if (elements(rule, "resources").empty()) {
    errors.required(path + ".resources", "resource rules must supply at least one resource");
  }
}

void validate_aggregation(const api::Json& role, api::FieldErrors& errors) {
  constexpr std::string_view kPath = "aggregationRule.clusterRoleSelectors";
  const api::Json& aggregation = value_of(role, "aggregationRule");
  if (!aggregation.is_object()) return;
  const api::Json::Array& selectors = elements(aggregation, "clusterRoleSelectors");
  if (selectors.empty()) {
    errors.required(kPath, "at least one clusterRoleSelector required if aggregationRule is non-nil");
  }
  for (std::size_t i = 0; i < selectors.size() && !errors.full(); ++i) {
    const std::string path = api::index_path(kPath, i);
    if (!validate_label_selector(selectors[i], path, errors)) {
      errors.invalid(path, selectors[i], "invalid label selector.");
    }
  }
}

void validate_role(const api::Json& role, api::FieldErrors& errors) {
  const api::Json::Array& rules = elements(role, "rules");
  const bool namespaced = text(role, "kind") == "Role";
  for (std::size_t i = 0; i < rules.size() && !errors.full(); ++i) {
    validate_rule(rules[i], namespaced, api::index_path("rules", i), errors);
  }
  if (!namespaced) validate_aggregation(role, errors);
}

void validate_role_update(const api::Json& role, const api::Json&, Endpoint, api::FieldErrors& errors) {
  validate_role(role, errors);
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

void require_group(const api::Json& reference, const std::string& path, api::FieldErrors& errors) {
  constexpr std::array<std::string_view, 1> kGroups{kGroup};
  if (text(reference, "apiGroup") != kGroup) {
    errors.not_supported(path + ".apiGroup", text(reference, "apiGroup"), kGroups);
  }
}

void validate_role_reference(const api::Json& role, bool namespaced, api::FieldErrors& errors) {
  const std::span<const std::string_view> kinds =
      namespaced ? std::span<const std::string_view>(kRoleKinds) : std::span<const std::string_view>(kClusterRoleKinds);
  require_group(role, "roleRef", errors);
  if (std::ranges::find(kinds, text(role, "kind")) == kinds.end()) {
    errors.not_supported("roleRef.kind", text(role, "kind"), kinds);
  }
  const std::string_view name = text(role, "name");
  if (name.empty()) return errors.required("roleRef.name");
  require_valid(api::path_segment_errors(name), name, "roleRef.name", errors);
}

void validate_account(const api::Json& subject, bool namespaced, const std::string& path, api::FieldErrors& errors) {
  constexpr std::array<std::string_view, 1> kNoGroups{""};
  const std::string_view name = text(subject, "name");
  if (!name.empty()) require_valid(api::dns1123_subdomain_errors(name), name, path + ".name", errors);
  if (!text(subject, "apiGroup").empty()) {
    errors.not_supported(path + ".apiGroup", value_of(subject, "apiGroup"), kNoGroups);
  }
  if (text(subject, "namespace").empty() && !namespaced) errors.required(path + ".namespace");
}

void validate_subject(const api::Json& subject, bool namespaced, const std::string& path, api::FieldErrors& errors) {
  if (text(subject, "name").empty()) errors.required(path + ".name");
  const std::string_view kind = text(subject, "kind");
  if (kind == "ServiceAccount") {
    validate_account(subject, namespaced, path, errors);
  } else if (kind == "User" || kind == "Group") {
    require_group(subject, path, errors);
  } else {
    errors.not_supported(path + ".kind", kind, kSubjectKinds);
  }
}

void validate_binding(const api::Json& binding, api::FieldErrors& errors) {
  const bool namespaced = text(binding, "kind") == "RoleBinding";
  validate_role_reference(value_of(binding, "roleRef"), namespaced, errors);
  const api::Json::Array& subjects = elements(binding, "subjects");
  for (std::size_t i = 0; i < subjects.size() && !errors.full(); ++i) {
    validate_subject(subjects[i], namespaced, api::index_path("subjects", i), errors);
  }
}

void validate_binding_update(const api::Json& binding, const api::Json& old, Endpoint, api::FieldErrors& errors) {
  validate_binding(binding, errors);
  if (!(value_of(binding, "roleRef") == value_of(old, "roleRef"))) {
    errors.invalid("roleRef", value_of(binding, "roleRef"), "cannot change roleRef");
  }
}

constexpr std::array kRoleColumns{kNameColumn, TableColumn{"Created At", "date", "", 0, "When it was created"}};

TableRow role_row(const api::Json& object, WallTime) {
  return {{name_of(object), object.string_at({"metadata", "creationTimestamp"})}, nullptr};
}

constexpr std::array kRoleBindingColumns{kNameColumn,
                                         TableColumn{"Role", "string", "", 0, "What is granted"},
                                         kAgeColumn,
                                         TableColumn{"Users", "string", "", 1, "Users it is granted to"},
                                         TableColumn{"Groups", "string", "", 1, "Groups it is granted to"},
                                         TableColumn{"ServiceAccounts", "string", "", 1, "Accounts it is granted to"}};

std::string subjects_of(const api::Json& binding, std::string_view kind) {
  std::vector<std::string> names;
  const api::Json* subjects = binding.find("subjects");
  if (subjects != nullptr && subjects->if_array() != nullptr) {
    for (const api::Json& subject : *subjects->if_array()) {
      if (subject.string_at({"kind"}) != kind) continue;
      const std::string name(subject.string_at({"name"}));
      names.push_back(kind == "ServiceAccount" ? fmt::format("{}/{}", subject.string_at({"namespace"}), name) : name);
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

TableRow role_binding_row(const api::Json& object, WallTime now) {
  return {{name_of(object),
           fmt::format("{}/{}", object.string_at({"roleRef", "kind"}), object.string_at({"roleRef", "name"})),
           age_of(object, now), subjects_of(object, "User"), subjects_of(object, "Group"),
           subjects_of(object, "ServiceAccount")},
          nullptr};
}

KindHooks role_hooks() {
  return {.set_defaults = default_role,
          .validate_create = validate_role,
          .validate_update = validate_role_update,
          .columns = kRoleColumns,
          .table_row = role_row};
}

Resource cluster_role_kind() {
  static const KindHooks kHooks = role_hooks();
  return {.group = "rbac.authorization.k8s.io",
          .version = "v1",
          .plural = "clusterroles",
          .singular = "clusterrole",
          .kind = "ClusterRole",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("clusterroles"),
          .names = NameRule::kPathSegment,
          .put_creates = true,
          .hooks = &kHooks};
}

KindHooks role_binding_hooks() {
  return {.set_defaults = default_binding,
          .validate_create = validate_binding,
          .validate_update = validate_binding_update,
          .columns = kRoleBindingColumns,
          .table_row = role_binding_row};
}

Resource cluster_role_binding_kind() {
  static const KindHooks kHooks = role_binding_hooks();
  return {.group = "rbac.authorization.k8s.io",
          .version = "v1",
          .plural = "clusterrolebindings",
          .singular = "clusterrolebinding",
          .kind = "ClusterRoleBinding",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("clusterrolebindings"),
          .names = NameRule::kPathSegment,
          .put_creates = true,
          .hooks = &kHooks};
}

Resource role_binding_kind() {
  static const KindHooks kHooks = role_binding_hooks();
  return {.group = "rbac.authorization.k8s.io",
          .version = "v1",
          .plural = "rolebindings",
          .singular = "rolebinding",
          .kind = "RoleBinding",
          .verbs = kAllVerbs,
          .storage = below("rolebindings"),
          .names = NameRule::kPathSegment,
          .put_creates = true,
          .hooks = &kHooks};
}

Resource role_kind() {
  static const KindHooks kHooks = role_hooks();
  return {.group = "rbac.authorization.k8s.io",
          .version = "v1",
          .plural = "roles",
          .singular = "role",
          .kind = "Role",
          .verbs = kAllVerbs,
          .storage = below("roles"),
          .names = NameRule::kPathSegment,
          .put_creates = true,
          .hooks = &kHooks};
}

}  // namespace

std::vector<Resource> rbac_kinds() {
  return {cluster_role_binding_kind(), cluster_role_kind(), role_binding_kind(), role_kind()};
}

}  // namespace spillway::apiserver::kinds
