// The members of an object that the server decides, whatever a client sends: identity, version, what an endpoint may
// not change, the generation, the end of a deletion. Thread: any (pure). Source: spec "API server contract", 4.8, 7,
// 8, 11.4.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/read/stored_object.h"
#include "apiserver/resource/kind_hooks.h"
#include "apiserver/resource/resource_registry.h"
#include "apiserver/write/write_job.h"
#include "base/time.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// The endpoint that the hooks of a kind receive.
Endpoint endpoint_of(SubresourceId part);

/// 409: an object of that name exists and is another one.
api::Status uid_mismatch(const api::GroupResource& of, std::string_view name, std::string_view wanted,
                         std::string_view actual);

/// Sets the metadata that only the server gives to a new object, and drops those that clients may not set.
void give_identity(const Resource& resource, const std::string& ns, std::string uid, WallTime now, api::Json& metadata);

/// Checks that the object that is written is the one that the job named: name, namespace, uid and version. Sets those
/// that it left open. 400: another name or namespace. 409: another uid, or not the version of `current`.
api::StatusResult<void> check_address(const UpdateJob& job, const Resource& resource, const StoredObject& current,
                                      api::Json& metadata);

/// The author of a change: the server's own values of server members are replaced, a client's are kept and refused if
/// they differ.
enum class Author : std::uint8_t { kClient, kServer };

/// Puts members of the metadata back that only the server sets.
void keep_server_members(api::Json& metadata, const api::Json& old, Author author);

/// Joins the members of `object` that this endpoint may change with all others of `old`.
void isolate(const Resource& resource, SubresourceId part, api::Json& object, const api::Json& old);

/// Joins equal references to one owner, with a warning for each removed one.
void join_owners(api::Json& object, std::vector<std::string>& warnings);

/// Resets the status of a new object to the initial one.
void reset_status(const Resource& resource, api::Json& object);

/// Sets metadata.generation: one more than before if the object differs in what its kind counts, the spec or what it
/// has in place of one. `stored`: the row in whose form the object is stored.
void count_generation(const Resource& resource, const Resource& stored, api::Json& object, const api::Json& old);

/// True if the update removed the last finalizer of an object that is being deleted without a grace left: it is then
/// deleted.
bool completes_deletion(const api::Json& object, const api::Json& old);

}  // namespace spillway::apiserver
