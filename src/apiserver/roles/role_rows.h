// Roles and bindings as rows: what every cluster has of them, as data. role_documents.h makes objects of them.
//
// Lists are texts with a space between two members, sorted. Where a rule is for resources, "core" is the group without
// a name; a rule without groups is for paths. Thread: any. Source: Kubernetes 1.32, default roles and role bindings
// with the feature gates as they are by default; Kubernetes docs, "Using RBAC Authorization".
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

struct RuleRow {
  std::string_view verbs;
  std::string_view groups;
  std::string_view resources;  // or paths
  std::string_view names = {};
};

/// A ClusterRole; with a namespace, a Role of it.
struct RoleRow {
  std::string_view name;
  std::vector<RuleRow> rules;
  std::string_view ns = {};
  /// "view": the label that adds its rules to the role `view`.
  std::string_view adds_to = {};
  /// "view": its rules are those of the roles with that label.
  std::string_view gathers = {};
};

/// A binding of a ClusterRole; with a namespace, of a Role of it.
struct BindingRow {
  std::string_view name;
  std::string_view role;
  std::string_view users = {};
  std::string_view groups = {};
  std::string_view accounts = {};  // service accounts of kube-system
  std::string_view ns = {};
};

inline constexpr std::string_view kRead = "get list watch";
inline constexpr std::string_view kWrite = "create delete deletecollection patch update";
inline constexpr std::string_view kReadWrite = "create delete deletecollection get list patch update watch";
inline constexpr RuleRow kWritesEvents{"create patch update", "core events.k8s.io", "events"};

/// Roles of the cluster, without those of single controllers.
std::span<const RoleRow> cluster_role_rows();
std::span<const BindingRow> cluster_binding_rows();

/// One for each controller of kube-controller-manager: "system:controller:NAME". Each is bound to the service account
/// NAME of kube-system.
std::span<const RoleRow> controller_role_rows();
inline constexpr std::string_view kControllerRolePrefix = "system:controller:";

/// Roles of the namespaces kube-system and kube-public.
std::span<const RoleRow> namespaced_role_rows();
std::span<const BindingRow> namespaced_binding_rows();

/// Roles that no other cluster has: for this server, its controllers and its scheduler.
std::span<const RoleRow> own_role_rows();
std::span<const BindingRow> own_binding_rows();

}  // namespace spillway::apiserver
