#include "wire/http/client_rank.h"

#include "api/text/identities.h"

#include <algorithm>
#include <array>

namespace spillway::wire {

namespace {

constexpr std::array<std::string_view, 2> kVitalGroups = {api::kMastersGroup, api::kNodesGroup};
constexpr std::array<std::string_view, 6> kVitalUsers = {
    "system:kube-controller-manager", "system:kube-scheduler", api::kOwnControllersUser,
    api::kOwnSchedulerUser,           "system:apiserver",      "kube-apiserver-kubelet-client"};

bool is_node_status(std::string_view path) {
  constexpr std::string_view kNodes = "/api/v1/nodes/";
  if (!path.starts_with(kNodes)) return false;
  path.remove_prefix(kNodes.size());
  return path.substr(std::min(path.find('/'), path.size())) == "/status";
}

/// True for one lease of a node, or of a controller that leads; a list of leases is not small.
bool is_lease(api::Method method, std::string_view path) {
  for (const std::string_view leases : {"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
                                        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"}) {
    if (!path.starts_with(leases)) continue;
    path.remove_prefix(leases.size());
    return path.empty() ? method == api::Method::kPost : path.size() > 1 && path.front() == '/';
  }
  return false;
}

bool is_health(std::string_view path) {
  return path == "/metrics" || path.starts_with("/healthz") || path.starts_with("/livez") ||
         path.starts_with("/readyz");
}

}  // namespace

ClientRank rank_of(const api::UserInfo& user) {
  const auto is_member = [&](std::string_view group) {
    return std::ranges::find(user.groups, group) != user.groups.end();
  };
  if (is_member(api::kUnauthenticatedGroup)) return ClientRank::kUnproven;
  if (std::ranges::find(kVitalUsers, user.name) != kVitalUsers.end()) return ClientRank::kVital;
  return std::ranges::any_of(kVitalGroups, is_member) ? ClientRank::kVital : ClientRank::kOrdinary;
}

RequestClass class_of(ClientRank rank, api::Method method, std::string_view target) {
  if (rank != ClientRank::kVital) return RequestClass::kOrdinary;
  const std::string_view path = target.substr(0, target.find('?'));
  const bool heartbeat = is_lease(method, path) || is_node_status(path) || is_health(path);
  return heartbeat ? RequestClass::kHeartbeat : RequestClass::kVital;
}

}  // namespace spillway::wire
