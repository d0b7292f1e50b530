// The rows of the kinds of networking.k8s.io, by the file that holds them. Pure.
#pragma once

#include "apiserver/resource/resource_registry.h"

namespace spillway::apiserver::kinds {

// ingress_classes.cc
Resource ingress_class_kind();
// ingresses.cc
Resource ingress_kind();
// ip_addresses.cc
Resource ip_address_kind();
// network_policies.cc
Resource network_policy_kind();
// service_ranges.cc
Resource service_range_kind();

}  // namespace spillway::apiserver::kinds
