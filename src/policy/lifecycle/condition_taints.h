// Conditions as taints: which NoSchedule taints a node should carry, and the labels every node should have.
// Thread: any (pure functions). Source: Kubernetes docs, "Taints and Tolerations", taint nodes by condition; spec "Node
// lifecycle", S9; vectors lifecycle/condition_taints, label_reconcile.
#pragma once

#include "api/object/meta.h"
#include "api/object/node.h"
#include "api/object/taint.h"

#include <vector>

namespace spillway::lifecycle {

/// Taints to add and to remove, each list in one write. Compared by key and effect; values are ignored.
struct TaintChange {
  std::vector<api::Taint> add;
  std::vector<api::Taint> remove;

  bool empty() const { return add.empty() && remove.empty(); }

  friend bool operator==(const TaintChange&, const TaintChange&) = default;
};

/// The difference between the NoSchedule taints that conditions and spec.unschedulable require and the node's taints of
/// the seven keys. Added taints have no time_added yet.
TaintChange condition_taint_change(const api::Node& node);

/// Copies kubernetes.io/os and kubernetes.io/arch to their beta names where these are missing or different; empty:
/// nothing to do.
api::StringMap label_changes(const api::StringMap& labels);

/// Adds the taint, or replaces the one with the same key and effect; false if an equal one was there.
bool put_taint(std::vector<api::Taint>& taints, const api::Taint& taint);
/// Removes all taints with this key and effect; false if there was none.
bool erase_taint(std::vector<api::Taint>& taints, const api::Taint& taint);
bool has_taint(const std::vector<api::Taint>& taints, std::string_view key, std::string_view effect);

}  // namespace spillway::lifecycle
