// A pod that looks for a node, with what every node is asked about it taken apart once.
// Thread: any (plain values). The pod must outlive it.
#pragma once

#include "api/node_affinity.h"
#include "api/pod.h"

#include <vector>

namespace spillway::scheduling {

struct PendingPod {
  const api::Pod* pod = nullptr;
  api::ResourceList requests;
  api::RequiredNodeAffinity required;
  std::vector<api::PreferredNodeTerm> preferred;  // empty also if it cannot be understood: it is a wish only
};

PendingPod make_pending(const api::Pod& pod);

}  // namespace spillway::scheduling
