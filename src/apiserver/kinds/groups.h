// The kinds of each API group, in the order in which discovery shows them. Pure.
#pragma once

#include "apiserver/resource/resource_registry.h"

#include <vector>

namespace spillway::apiserver::kinds {

/// the core group
std::vector<Resource> core_kinds();
/// admissionregistration.k8s.io
std::vector<Resource> admission_registration_kinds();
/// apiregistration.k8s.io
std::vector<Resource> api_registration_kinds();
/// apps
std::vector<Resource> apps_kinds();
/// authentication.k8s.io
std::vector<Resource> authentication_kinds();
/// authorization.k8s.io
std::vector<Resource> authorization_kinds();
/// autoscaling
std::vector<Resource> autoscaling_kinds();
/// batch
std::vector<Resource> batch_kinds();
/// certificates.k8s.io
std::vector<Resource> certificates_kinds();
/// coordination.k8s.io
std::vector<Resource> coordination_kinds();
/// discovery.k8s.io
std::vector<Resource> discovery_kinds();
/// events.k8s.io
std::vector<Resource> events_kinds();
/// flowcontrol.apiserver.k8s.io
std::vector<Resource> flow_control_kinds();
/// metrics.k8s.io
std::vector<Resource> metrics_kinds();
/// networking.k8s.io
std::vector<Resource> networking_kinds();
/// node.k8s.io
std::vector<Resource> node_api_kinds();
/// policy
std::vector<Resource> policy_kinds();
/// rbac.authorization.k8s.io
std::vector<Resource> rbac_kinds();
/// scheduling.k8s.io
std::vector<Resource> scheduling_kinds();
/// storage.k8s.io
std::vector<Resource> storage_kinds();
/// apiextensions.k8s.io
std::vector<Resource> api_extensions_kinds();

}  // namespace spillway::apiserver::kinds
