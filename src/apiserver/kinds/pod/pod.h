// The rules of pods in the API server: defaults, admission, validation, and the changes that an update may make; the
// rules of a pod spec apply to the templates of workloads as well. Everything but admission is pure.
// Source: spec "API server contract", 12.1-12.4; vectors api/create, validation_create_pod, defaulting_pod,
// validation_update_pod.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/resource/kind_hooks.h"

#include <string_view>

namespace spillway::apiserver::kinds {

// Pod specs, in pods and in templates (defaults.cc, disabled_fields.cc, template.cc).

/// Defaults of a pod template; adds members that defaults need.
void default_pod_template(api::Json& pod_template);
/// Removes fields of features that are off in Kubernetes 1.36 from a pod spec, as its API server does.
void drop_disabled_fields(api::Json& spec);
/// Drops an empty overhead, but for a new pod: there an empty object is a request of its own.
void drop_empty_overhead(api::Json& spec);
/// Adds all errors of a pod template; fields start with `path` ("spec.template"). `before`: the template that an update
/// replaces, whose values may stay although they are refused in a new one; null: there is none.
void validate_pod_template(const api::Json& pod_template, std::string_view path, api::FieldErrors& errors,
                           const api::Json& before = {});
/// The labels and annotations of a template alone.
void validate_template_metadata(const api::Json& pod_template, std::string_view path, api::FieldErrors& errors);
/// Validates the overhead and the tolerations of a RuntimeClass; fields start with `path`.
void validate_overhead(const api::Json& amounts, std::string_view path, api::FieldErrors& errors);
void validate_tolerations(const api::Json& tolerations, std::string_view path, api::FieldErrors& errors);

// Pods (defaults.cc, admission.cc, pod_validation.cc, pod_update.cc, resize.cc).

void default_pod(api::Json& pod);
/// Sets the status of a new pod, and fields that follow from several others.
void prepare_new_pod(api::Json& pod);
/// Limits of the namespace, service account, runtime class, priority, tolerations of a new pod.
api::StatusResult<void> admit_pod(api::Json& pod, const AdmissionContext& context);
/// Checks after validation: limits of the namespace, overhead against the runtime class.
api::StatusResult<void> confirm_pod(const api::Json& pod, const AdmissionContext& context);
void validate_new_pod(const api::Json& pod, api::FieldErrors& errors);

void prepare_pod_update(api::Json& pod, const api::Json& old, Endpoint endpoint);
api::StatusResult<void> admit_pod_update(api::Json& pod, const api::Json& old, Endpoint endpoint,
                                         const AdmissionContext& context);
/// Adds an error for every change that an update may not make, and all errors of the result.
void validate_pod_update(const api::Json& pod, const api::Json& old, Endpoint endpoint, api::FieldErrors& errors);
/// Checks of a valid update: limits of the namespace, and whether the pod's node can follow it.
api::StatusResult<void> confirm_pod_update(const api::Json& pod, const api::Json& old, Endpoint endpoint,
                                           const AdmissionContext& context);

}  // namespace spillway::apiserver::kinds
