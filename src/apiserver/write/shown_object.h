// An object as webhooks are shown it during a write, and the members that they may not change.
// Thread: any (pure). Source: Kubernetes docs, "Dynamic Admission Control".
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/resource/resource_registry.h"
#include "apiserver/write/write_job.h"

#include <optional>

namespace spillway::apiserver {

/// The object as its resource, or the endpoint of it, shows it.
api::Json shown(const Resource& row, const std::optional<EndpointForm>& form, const api::Json& object);

/// A new object without the members that the server alone gives it.
api::Json shown_new(const Resource& row, const api::Json& object, bool name_is_generated);

/// Puts the managers back that `before` records.
void keep_managers(api::Json& object, const api::Json& before);

/// 400: a webhook changed the name or the namespace, and with that made another object of it.
api::StatusResult<void> check_same_object(const api::Json& object, const api::Json& before, bool name_is_generated);

}  // namespace spillway::apiserver
