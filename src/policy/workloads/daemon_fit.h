// Decides if a node should run, and may keep, a pod of a DaemonSet. Thread: any (pure).
// Source: Kubernetes docs, "DaemonSet", how daemon pods are scheduled, taints and tolerations.
#pragma once

#include "api/object/node.h"
#include "api/object/node_affinity.h"
#include "api/object/pod.h"

namespace spillway::workloads {

struct DaemonFit {
  bool should_run = false;       // a pod is created on the node
  bool should_continue = false;  // an existing pod may stay

  friend bool operator==(const DaemonFit&, const DaemonFit&) = default;
};

/// `pod`: made from the template, with the tolerations of daemon pods.
DaemonFit daemon_fit(const api::Pod& pod, const api::RequiredNodeAffinity& affinity, const api::Node& node);

}  // namespace spillway::workloads
