// Events of events.k8s.io and of v1 are one object with other names of its members. Thread: any (pure). Source: API
// Reference, Event v1 and Event v1 events.k8s.io.
#pragma once

#include "api/json/json.h"

namespace spillway::apiserver {

/// Converts the stored event to events.k8s.io.
api::Json event_to_view(const api::Json& stored);
/// Converts an event of events.k8s.io to its stored form.
api::Json event_from_view(const api::Json& view);

}  // namespace spillway::apiserver
