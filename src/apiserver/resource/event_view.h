// Events of events.k8s.io and of v1 are one object with other names of its members. Thread: any (pure). Source: API
// Reference, Event v1 and Event v1 events.k8s.io.
#pragma once

#include "api/json/json.h"

namespace spillway::apiserver {

/// As events.k8s.io writes what is stored.
api::Json event_to_view(const api::Json& stored);
/// As it is stored what events.k8s.io writes.
api::Json event_from_view(const api::Json& view);

}  // namespace spillway::apiserver
