// Kinds of resource names: which count where.
// Thread: any. Source: Kubernetes docs, "Resource Management for Pods and Containers", extended resources; spec "Pod
// admission", 6; vectors admission/resource_names.
#pragma once

#include <string_view>

namespace spillway::api {

/// True for a name without "/", or with "kubernetes.io/" anywhere in it.
bool is_native_resource(std::string_view name);
/// True for a name with "kubernetes.io/" anywhere in it.
bool is_prefixed_native_resource(std::string_view name);
/// True for a name with a foreign domain: not native, not "requests.…", and a qualified name behind "requests.".
bool is_extended_resource(std::string_view name);
bool is_hugepage_resource(std::string_view name);
bool is_attachable_volume_resource(std::string_view name);
/// Counted by fit beside cpu, memory, ephemeral-storage and pods.
bool is_scalar_resource(std::string_view name);
/// Limits may exceed requests: native and no huge page.
bool allows_overcommit(std::string_view name);

}  // namespace spillway::api
