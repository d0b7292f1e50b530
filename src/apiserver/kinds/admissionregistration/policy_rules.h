// Admission policies and their bindings: defaults and validation. Thread: any (pure). Source: Kubernetes API reference,
// ValidatingAdmissionPolicy and ValidatingAdmissionPolicyBinding.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

namespace spillway::apiserver::kinds {

void default_policy(api::Json& policy);
void default_policy_binding(api::Json& binding);

/// Every expression has to compile: expressions that this server cannot evaluate are refused.
void validate_policy(const api::Json& policy, api::FieldErrors& errors);
void validate_policy_binding(const api::Json& binding, api::FieldErrors& errors);

}  // namespace spillway::apiserver::kinds
