// A pod that needs a node, with its requirements parsed once for all nodes, and the profile that it is scheduled by.
// Thread: any (plain values). The pod and the profile must outlive it.
#pragma once

#include "api/object/node_affinity.h"
#include "api/object/pod.h"
#include "policy/node_load.h"
#include "policy/scheduling/profile.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::scheduling {

/// An image the pod needs, and how far it is spread over the cluster.
struct PendingImage {
  std::string name;       // name with tag: ":latest" is added where there is none
  double node_share = 0;  // share of the nodes that hold it, 0..1
  bool of_volume = false;
};

struct PendingPod {
  const api::Pod* pod = nullptr;
  const Profile* profile = nullptr;
  policy::PodLoad load;
  api::RequiredNodeAffinity required;
  /// The pod's own preferred terms, none if they cannot be parsed, and those of the profile: preferences only.
  std::vector<api::PreferredNodeTerm> preferred;
  bool asks_for_nodes = false;             // has a node selector or required node affinity
  bool wishes_for_nodes = false;           // has preferred node affinity, even if no term can match
  std::vector<std::string_view> features;  // features that a node has to declare (policy/declared_features.h)
  bool asks_for_ports = false;
  std::vector<PendingImage> images;  // one per container, init container and image volume
  /// The only nodes that are tried, because every affinity term names nodes. An empty set: the terms contradict
  /// themselves.
  std::optional<std::set<std::string>> only_nodes;
};

PendingPod make_pending(const api::Pod& pod, const Profile& profile = default_profile());

/// True if, under one profile, every node filters and scores both alike (except for the volumes of their claims); the
/// spread of their images is left out.
bool asks_alike(const PendingPod& one, const PendingPod& other);

}  // namespace spillway::scheduling
