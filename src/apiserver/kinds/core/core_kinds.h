// The rows of the kinds of the core group, by the file that holds them. Pure.
#pragma once

#include "apiserver/resource/resource_registry.h"

namespace spillway::apiserver::kinds {

// configuration.cc
Resource component_status_kind();
Resource config_map_kind();
Resource secret_kind();
Resource service_account_kind();
// endpoints.cc
Resource endpoints_kind();
// events.cc
Resource event_kind();
Resource new_event_kind();
// limit_ranges.cc
Resource limit_range_kind();
// namespace.cc
Resource namespace_kind();
// node.cc
Resource node_kind();
// persistent_volumes.cc
Resource persistent_volume_kind();
Resource persistent_volume_claim_kind();
// pod_templates.cc
Resource pod_template_kind();
// pods.cc
Resource pod_kind();
// resource_quotas.cc
Resource resource_quota_kind();
// service.cc
Resource service_kind();

}  // namespace spillway::apiserver::kinds
