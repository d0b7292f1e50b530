// The rows of the kinds of admissionregistration.k8s.io, by the file that holds them. Pure.
#pragma once

#include "apiserver/resource/resource_registry.h"

namespace spillway::apiserver::kinds {

// admission_policies.cc
Resource validating_admission_policy_kind();
Resource validating_admission_policy_binding_kind();
// webhook_configurations.cc
Resource mutating_webhook_configuration_kind();
Resource validating_webhook_configuration_kind();

}  // namespace spillway::apiserver::kinds
