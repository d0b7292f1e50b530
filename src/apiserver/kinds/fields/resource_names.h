// Names of resources as keys of amounts: in limits, requests and quotas. Pure. Source: spec "API server contract", 12;
// vectors api/validation_create.
#pragma once

#include "apiserver/kinds/fields/checked_field.h"

#include <string_view>

namespace spillway::apiserver::kinds {

/// Adds an error at `at` unless the name is a known one without a domain, or has a domain.
void check_resource_name(std::string_view name, const CheckedField& at);
/// The same check for resources that a container can request.
void check_container_resource_name(std::string_view name, const CheckedField& at);

/// Objects that are counted by a name without a domain: "pods", "services.nodeports".
bool is_count_name(std::string_view name);
/// True for resources that are counted in whole units: the standard ones, and extended resources.
bool is_counted_whole(std::string_view name);

}  // namespace spillway::apiserver::kinds
