// The headers by which an aggregated API server learns the user of a request. It trusts them from a client that shows
// the proxy certificate (ConfigMap kube-system/extension-apiserver-authentication).
// Thread: any (pure). Source: Kubernetes docs, "Configure the Aggregation Layer", original request username and group.
#pragma once

#include "api/exchange/exchange.h"

namespace spillway::apiserver {

/// X-Remote-User, X-Remote-Group and X-Remote-Extra-KEY, whose keys are percent-encoded. Values without line ends.
api::HeaderList identity_headers(const api::UserInfo& user);

/// The user that this server names in its own requests to aggregated API servers.
api::UserInfo aggregator_user();

}  // namespace spillway::apiserver
