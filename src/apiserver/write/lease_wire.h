// The one field of a Lease in protobuf that a heartbeat changes, found without parsing the rest. The caller compares
// the rest by encoding the body that it expects. Thread: any (pure). Source: Kubernetes docs, "Kubernetes API
// Concepts", protobuf encoding; published protobuf definition of coordination/v1.
#pragma once

#include "base/time.h"

#include <optional>
#include <string_view>

namespace spillway::apiserver {

/// spec.renewTime of a body ("k8s\0" and the object), in microseconds as it would be stored. nullopt: there is none
/// where Go writes it, it is before 1970 or behind 9999, or the bytes do not lead there.
std::optional<WallTime> sent_renew_time(std::string_view body);

}  // namespace spillway::apiserver
