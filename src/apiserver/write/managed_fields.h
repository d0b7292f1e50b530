// The managers of a write: which fields of an object its metadata.managedFields records for the one that sends it.
// Thread: any (pure). Source: spec "API server contract", 10; Kubernetes docs, "Server-Side Apply".
#pragma once

#include "api/json/json.h"
#include "api/patch/apply.h"
#include "apiserver/resource/resource_registry.h"
#include "apiserver/write/write_job.h"
#include "base/time.h"

#include <string>

namespace spillway::apiserver {

/// The manager entry of a write through that endpoint. `creates`: there was no object before.
api::FieldWriter field_writer(const Resource& resource, SubresourceId part, std::string manager, WallTime now,
                              bool creates);

/// The object with the fields that differ from `old` (null: it is new) recorded for the manager of the write. It is
/// unchanged if its kind records no managers, or the write names none.
api::Json with_managers(const Resource& resource, SubresourceId part, const WriteContext& context, WallTime now,
                        const api::Json* old, api::Json object);

}  // namespace spillway::apiserver
