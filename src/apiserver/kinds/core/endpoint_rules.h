// Rules shared by Endpoints and EndpointSlices: names, addresses and ports under validation, cells that show the first
// few of many. Thread: any (pure). Source: Kubernetes API reference, "Endpoints", "EndpointSlice"; vectors
// api/endpoints_*.
#pragma once

#include "api/json/json.h"
#include "apiserver/kinds/fields/checked_field.h"

#include <cstddef>
#include <string>
#include <vector>

namespace spillway::apiserver::kinds {

/// Validates the host name and the node name of an address.
void check_endpoint_names(const CheckedField& endpoint);
void check_not_special(const CheckedField& address);
/// A protocol, and the name of what is spoken over it.
void check_endpoint_protocol(const CheckedField& port);
/// The default is TCP.
void default_protocols(api::Json::Array& ports);

/// "a,b,c + 7 more...": the first three.
std::string first_few(const std::vector<std::string>& shown, std::size_t count);
/// The most endpoints that a table cell shows.
inline constexpr std::size_t kShownEndpointsMax = 3;

}  // namespace spillway::apiserver::kinds
