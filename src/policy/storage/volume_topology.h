// The topology of volumes, by labels: a volume's own, and those that its class allows for new ones. Thread: any (pure).
// Source: Kubernetes docs, "Storage Classes", Allowed Topologies; "Well-Known Labels", topology.kubernetes.io/zone.
#pragma once

#include "api/object/storage.h"

namespace spillway::storage {

/// A new volume of the class may be made for the node: one of its terms matches the labels of the node, or it has none.
/// An empty term matches nothing.
bool allows_node(const api::StorageClass& storage_class, const api::ObjectMeta& node);

/// The labels of the volume for zone and region, of which each may name several ("a__b"), allow the node. A node
/// without any such label is allowed, a label that cannot be parsed is ignored, and a node may have the newer name of
/// an old label.
bool is_in_zone_of(const api::PersistentVolume& volume, const api::ObjectMeta& node);

}  // namespace spillway::storage
