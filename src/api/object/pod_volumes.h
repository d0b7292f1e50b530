// The claims and exclusive disks to which a pod's volumes lead. Thread: any (pure).
// Source: Kubernetes API reference, "Volume"; Kubernetes docs, "Ephemeral Volumes".
#pragma once

#include "api/object/pod.h"

#include <string>
#include <vector>

namespace spillway::api {

/// The names of the claims to which the pod's volumes lead, each once, in the order of the volumes. Those of ephemeral
/// volumes have the pod's name in front.
std::vector<std::string> claims_of(const Pod& pod);

/// A disk of one of the old volume types that are not shared between pods, unless all only read it.
struct ExclusiveDisk {
  enum class Kind { kGcePersistentDisk, kAwsElasticBlockStore, kIscsi, kRbd };

  Kind kind{};
  std::string name;                   // for RBD the pool and the image
  std::vector<std::string> monitors;  // for RBD: disks with a common monitor are the same disk
  bool read_only = false;             // never set for AWS: such a disk is not shared at all

  friend bool operator==(const ExclusiveDisk&, const ExclusiveDisk&) = default;
};

std::vector<ExclusiveDisk> exclusive_disks_of(const Pod& pod);

/// Two pods may not have these on one node.
bool are_in_conflict(const ExclusiveDisk& one, const ExclusiveDisk& other);

}  // namespace spillway::api
