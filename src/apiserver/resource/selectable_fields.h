// The fields that field selectors may name, of each kind that has some besides metadata.name and metadata.namespace.
// Thread: any (constants). Source: spec "API server contract", 9.5.
#pragma once

#include "apiserver/resource/resource_registry.h"

#include <span>

namespace spillway::apiserver {

std::span<const SelectableField> pod_fields();
std::span<const SelectableField> node_fields();
std::span<const SelectableField> namespace_fields();
std::span<const SelectableField> secret_fields();
std::span<const SelectableField> service_fields();
std::span<const SelectableField> signing_request_fields();
std::span<const SelectableField> job_fields();
std::span<const SelectableField> replication_controller_fields();
std::span<const SelectableField> event_fields();
/// The same fields in the same order under the names of events.k8s.io.
std::span<const SelectableField> event_view_fields();

}  // namespace spillway::apiserver
