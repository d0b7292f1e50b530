// Server-side apply, and the bookkeeping of field owners for every other write, as pure functions: the live object and
// the sent one in, the new object with its managedFields out. Defaulting, admission and validation follow. Thread: any
// (pure). Source: Kubernetes docs, "Server-Side Apply"; KEP-555; spec "API server contract", 7.6, 10.5.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "api/schema/schema.h"
#include "base/time.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace spillway::api {

/// The manager of a write, the part of the object that it writes, and the time.
struct FieldWriter {
  std::string manager;      // the fieldManager parameter, else the user agent up to its first '/'
  std::string subresource;  // "status"; empty for the main endpoint
  WallTime time;            // whole seconds are kept
  /// Top-level members this endpoint does not write ("status" for the main one): never owned, dropped when applied.
  std::span<const std::string_view> untracked;
};

enum class Force : std::uint8_t { kNo, kYes };

/// The object after applying `config`, in canonical form with managedFields. `live`: in canonical form; nullptr
/// creates. 400: no apiVersion or kind, another kind, an unknown field, a wrong value, managedFields sent, list
/// elements without keys. 409 Conflict: other managers own what would change; one cause per path. The manager "kubectl"
/// brings the annotation of its client-side apply up to date where the object has one.
StatusResult<Json> apply_config(const Type& type, const Json* live, const Json& config, const FieldWriter& writer,
                                Force force);

/// `after` with the managedFields that result from any write but an apply. `before`: nullptr for a create; both in
/// canonical form, after defaulting; a new object before admission, since fields that admission adds have no owner. The
/// list that the client sent in `after` counts, unless it is absent, malformed or sent through a subresource; `[{}]`
/// forgets all owners. An object without owners gets none.
Json track_update(const Type& type, const Json* before, Json after, const FieldWriter& writer);

}  // namespace spillway::api
