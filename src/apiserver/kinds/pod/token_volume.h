// The volume by which a pod speaks to the API server: a token of its account that is renewed, the certificate the
// server is verified by, and its namespace. Pure. Source: Kubernetes docs, "Managing Service Accounts", admission; spec
// "API server contract", 12.1.
#pragma once

#include "api/json/json.h"

namespace spillway::apiserver::kinds {

/// True if the pod, or else its account, wants the volume with the token.
bool wants_token_volume(const api::Json& pod, const api::Json& account);

/// Adds it to the pod and mounts it into each container that has nothing at its place. The pod has its uid, from which
/// the name follows.
void add_token_volume(api::Json& pod);

}  // namespace spillway::apiserver::kinds
