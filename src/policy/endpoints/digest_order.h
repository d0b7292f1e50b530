// The order in which upstream lists ports and subsets: by the FNV-128a digests of their text in Go. The order has
// no meaning, but a comparison with upstream's objects would take any other order for a change. Thread: any (pure).
// Source: Kubernetes 1.36, endpoints and endpoint slices; vectors workloads/endpointslices, workloads/repack_subsets.
#pragma once

#include "api/object/endpoints.h"

#include <vector>

namespace spillway::endpoints {

void sort_by_digest(std::vector<api::SlicePort>& ports);
void sort_by_digest(std::vector<api::EndpointPort>& ports);
void sort_by_digest(std::vector<api::EndpointSubset>& subsets);

}  // namespace spillway::endpoints
