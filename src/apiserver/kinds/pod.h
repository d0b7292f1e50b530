// What the API server knows of pods: defaults of a pod spec (also inside templates), admission, validation, and what an
// update may change. Pure.
// Source: spec "API server contract", 12.1-12.4; vectors api/create.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/resource/kind_hooks.h"

#include <string>
#include <string_view>

namespace spillway::apiserver::kinds {

/// Defaults that a pod spec has wherever it stands.
void default_pod_spec(api::Json& spec);
/// Everything wrong with a pod spec; fields start with `path` ("spec", "spec.template.spec").
void validate_pod_spec(const api::Json& spec, std::string_view path, api::FieldErrors& errors);

KindHooks pod_hooks();

// Parts of the above, one room each.

void default_container(api::Json& container);
void default_volume(api::Json& volume);
/// "containers", "initContainers" and "ephemeralContainers" of a spec.
void validate_containers(const api::Json& spec, std::string_view path, api::FieldErrors& errors);
/// securityContext of the pod, and of one container.
void validate_pod_security(const api::Json& spec, const std::string& path, api::FieldErrors& errors);
void validate_container_security(const api::Json& container, const std::string& path, api::FieldErrors& errors);
void validate_volumes(const api::Json& spec, std::string_view path, api::FieldErrors& errors);
/// Service account, runtime class, priority, tolerations of a new pod.
api::StatusResult<void> admit_pod(api::Json& pod, const AdmissionContext& context);
/// Everything an update may not change.
void validate_pod_update(const api::Json& pod, const api::Json& old, Endpoint endpoint, api::FieldErrors& errors);

}  // namespace spillway::apiserver::kinds
