// May this pod run on this node: unschedulable, taints, selector and affinity, ports, resources. All reasons, not the
// first, in that order, with upstream's words. Thread: any (pure). Source: spec "Pod admission", scheduler's filters;
// Kubernetes docs, "Scheduling Framework".
#pragma once

#include "api/pod.h"
#include "policy/reason.h"
#include "policy/scheduling/node_load.h"
#include "policy/scheduling/pending_pod.h"

#include <string>
#include <vector>

namespace spillway::scheduling {

/// Why a pod does not fit. `text` is upstream's: "Insufficient memory", "node(s) were unschedulable".
struct Misfit {
  policy::Reason reason;
  std::string text;

  friend bool operator==(const Misfit&, const Misfit&) = default;
};

/// Empty: it fits.
std::vector<Misfit> find_misfits(const PendingPod& pod, const NodeLoad& node);

}  // namespace spillway::scheduling
