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

/// Of controllers and of the scheduler, wherever they run.
inline constexpr std::string_view kControllerManagerUser = "system:kube-controller-manager";
inline constexpr std::string_view kSchedulerUser = "system:kube-scheduler";

}  // namespace spillway::api
