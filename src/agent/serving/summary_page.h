// /stats/summary as a kubelet answers it. Thread: any (pure). Source: Kubernetes docs, "Node metrics data"; spec "Node
// agent", 10.3.
#pragma once

#include "api/exchange/exchange.h"
#include "api/object/summary.h"
#include "base/error.h"

namespace spillway::agent {

/// The summary as JSON; with ?only_cpu_and_memory=true only the part that `kubectl top` and autoscalers need. An error
/// is a 500.
api::Response summary_page(Result<api::Summary> summary, const api::Target& target);

}  // namespace spillway::agent
