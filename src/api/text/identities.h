// Users and groups that have a meaning in every cluster. Thread: any.
// Source: Kubernetes docs, "Using RBAC Authorization", default roles; "Using Node Authorization"; "Authenticating".
#pragma once

#include <string_view>

namespace spillway::api {

inline constexpr std::string_view kMastersGroup = "system:masters";
inline constexpr std::string_view kAuthenticatedGroup = "system:authenticated";
inline constexpr std::string_view kUnauthenticatedGroup = "system:unauthenticated";
inline constexpr std::string_view kAnonymousUser = "system:anonymous";

/// The user of a node is this and its name.
inline constexpr std::string_view kNodeUserPrefix = "system:node:";
inline constexpr std::string_view kNodesGroup = "system:nodes";

/// Users of this project's controllers and scheduler, where they have no other name. They have the rights that these
/// need and no more, while the roles of kube-controller-manager and kube-scheduler are Kubernetes' own.
inline constexpr std::string_view kOwnControllersUser = "spillway:controllers";
inline constexpr std::string_view kOwnSchedulerUser = "spillway:scheduler";
/// The user that makes volumes on the nodes of `up`.
inline constexpr std::string_view kLocalStorageUser = "spillway:local-storage";
/// The user that gives Services of type LoadBalancer the addresses of the machine of `up`.
inline constexpr std::string_view kLoadBalancerUser = "spillway:load-balancer";

}  // namespace spillway::api
