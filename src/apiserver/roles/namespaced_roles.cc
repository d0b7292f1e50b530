#include "api/text/dns_identity.h"
#include "apiserver/roles/role_rows.h"

namespace spillway::apiserver {
namespace {

constexpr std::string_view kSystem = "kube-system";
constexpr std::string_view kPublic = "kube-public";

/// The rules of a component that takes the lease of that name. ConfigMaps were the locks of old versions.
std::vector<RuleRow> leader_rules(std::string_view name) {
  constexpr std::string_view kVerbs = "create get list update watch";
  return {{"watch", "core", "configmaps"},
          {"get update", "core", "configmaps", name},
          {kVerbs, "coordination.k8s.io", "leases"},
          {kVerbs, "coordination.k8s.io", "leasecandidates"}};
}

}  // namespace

std::span<const RoleRow> namespaced_role_rows() {
  static const std::vector<RoleRow> kRows{
      {"system:controller:bootstrap-signer",
       {{kRead, "core", "configmaps"}, {"update", "core", "configmaps", "cluster-info"}, kWritesEvents},
       kPublic},
      {"extension-apiserver-authentication-reader",
       {{kRead, "core", "configmaps", "extension-apiserver-authentication"}},
       kSystem},
      {"system::leader-locking-kube-controller-manager", leader_rules("kube-controller-manager"), kSystem},
      {"system::leader-locking-kube-scheduler", leader_rules("kube-scheduler"), kSystem},
      {"system:controller:bootstrap-signer", {{kRead, "core", "secrets"}}, kSystem},
      {"system:controller:cloud-provider", {{"create get list watch", "core", "configmaps"}}, kSystem},
      {"system:controller:token-cleaner", {{"delete get list watch", "core", "secrets"}, kWritesEvents}, kSystem},
      // The Service by which the DNS server of this project is found.
      {api::kDnsUser,
       {{"create", "core", "services"}, {"create delete update", "discovery.k8s.io", "endpointslices"}},
       kSystem}};
  return kRows;
}

std::span<const BindingRow> namespaced_binding_rows() {
  static const std::vector<BindingRow> kRows{
      {.name = "system:controller:bootstrap-signer",
       .role = "system:controller:bootstrap-signer",
       .accounts = "bootstrap-signer",
       .ns = kPublic},
      {.name = "system::extension-apiserver-authentication-reader",
       .role = "extension-apiserver-authentication-reader",
       .users = "system:kube-controller-manager system:kube-scheduler",
       .ns = kSystem},
      {.name = "system::leader-locking-kube-controller-manager",
       .role = "system::leader-locking-kube-controller-manager",
       .users = "system:kube-controller-manager",
       .accounts = "kube-controller-manager leader-election-controller",
       .ns = kSystem},
      {.name = "system::leader-locking-kube-scheduler",
       .role = "system::leader-locking-kube-scheduler",
       .users = "system:kube-scheduler",
       .accounts = "kube-scheduler",
       .ns = kSystem},
      {.name = "system:controller:bootstrap-signer",
       .role = "system:controller:bootstrap-signer",
       .accounts = "bootstrap-signer",
       .ns = kSystem},
      {.name = "system:controller:cloud-provider",
       .role = "system:controller:cloud-provider",
       .accounts = "cloud-provider",
       .ns = kSystem},
      {.name = "system:controller:token-cleaner",
       .role = "system:controller:token-cleaner",
       .accounts = "token-cleaner",
       .ns = kSystem},
      {.name = api::kDnsUser, .role = api::kDnsUser, .users = api::kDnsUser, .ns = kSystem}};
  return kRows;
}

}  // namespace spillway::apiserver
