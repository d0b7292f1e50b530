// Shared by the rows of writes: the cluster they are written for, the placeholders for values, and the members of an
// object that differ from run to run.
#pragma once

#include "apiserver/server_fixture.h"

#include <memory>
#include <string_view>

namespace spillway::apiserver {

/// A server with the namespace, account and priority class that the rows need, without controllers that act on the
/// objects.
std::unique_ptr<TestServer> make_vector_world();

/// The strings "@uid", "@resourceVersion" and "@deletionTimestamp" become those of the object, "@now" the time.
void fill_in(api::Json& value, const api::Json& object, WallTime now);

/// The object of an answer without values that differ in every run.
api::Json without_server_values(api::Json object);

}  // namespace spillway::apiserver
