// An observer of the node lifecycle controller: notified of its changes of nodes and leases, of its passes, and of its
// decisions. Thread: loop; never calls back.
#pragma once

#include "api/object/lease.h"
#include "api/object/node.h"
#include "base/time.h"

#include <string>

namespace spillway::controllers {

struct LifecycleDecision {
  std::string subject;  // "node-1", "zone zone-0"
  std::string what;     // "marked Unknown", "tainted unreachable", "held: mark-not-ready"
  std::string reasons;  // rendered; may be empty
};

class LifecycleWitness {
 public:
  virtual ~LifecycleWitness() = default;

  /// The start: all present nodes and leases follow, then the first pass.
  virtual void on_start(Now now) = 0;
  virtual void on_pass(Now now) = 0;
  /// Null: the node was deleted.
  virtual void on_node(const std::string& name, const api::Node* node, Now now) = 0;
  /// Received from a watch, or by a get.
  virtual void on_lease(const std::string& node, const api::Lease& lease, Now now) = 0;
  virtual void on_decision(const LifecycleDecision& decision, Now now) = 0;
};

}  // namespace spillway::controllers
