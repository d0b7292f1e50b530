// What the claims of a pod that waits come to, as the API server shows them. Thread: main, as ClusterView.
#pragma once

#include "api/object/pod.h"
#include "apps/view/cluster_view.h"
#include "policy/storage/pod_claims.h"

namespace spillway::apps {

storage::PodClaims claims_now(ClusterView& cluster, const api::Pod& pod);

}  // namespace spillway::apps
