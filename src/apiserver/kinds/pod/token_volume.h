// The volume by which a pod speaks to the API server: a token of its account that is renewed, the certificate the
// server is verified by, and its namespace. Pure. Source: Kubernetes docs, "Managing Service Accounts", admission; spec
// "API server contract", 12.1.
#pragma once

#include "api/json/json.h"

namespace spillway::apiserver::kinds {

/// True if the pod, or else its account, wants the volume with the token.
bool wants_token_volume(const api::Json& pod, const api::Json& account);

/// Adds the volume to the pod, and a mount to each container that has no mount at its path. The pod must have its uid,
/// from which the volume's name follows.
void add_token_volume(api::Json& pod);

}  // namespace spillway::apiserver::kinds
