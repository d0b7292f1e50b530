// Discovery documents as text. Members are written in the order of Kubernetes' declarations, because some clients match
// them with patterns. Thread: any (pure). Source: Kubernetes API reference, APIResourceList, APIGroup,
// APIGroupDiscoveryList.
#pragma once

#include "api/json/json.h"

#include <string>

namespace spillway::apiserver {

/// Compact and without a newline. Members without a place of their own follow by name.
std::string discovery_text(const api::Json& document);

}  // namespace spillway::apiserver
