// Objects of every new cluster: namespaces, priority classes, roles and bindings. Created if absent; missing rules and
// subjects are added to roles and bindings (roles/missing_grants.h), the others are never changed. Thread: loop.
// Source: spec "API server contract", 2.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/write/writer.h"

#include <functional>
#include <vector>

namespace spillway::apiserver {

/// `more`: further objects of the cluster. `done` once all of it exists, or with the first failure. A role or binding
/// that cannot get the rules it lacks (it would be too large) is logged and left unchanged.
void create_cluster_objects(Core& core, Writer& writer, std::vector<api::Json> more,
                            std::move_only_function<void(Outcome)> done);

/// The user under which the server itself writes.
api::UserInfo server_user();

}  // namespace spillway::apiserver
