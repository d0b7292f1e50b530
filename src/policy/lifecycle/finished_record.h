// Event about the finished pods of one owner that the garbage collector removed: how many, why they ended, and the last
// of them. Thread: any (pure functions). Bounds: five reasons by name; 400 bytes of a pod's message. Source:
// docs/compat, `--terminated-pod-gc-fair`.
#pragma once

#include "api/object/event.h"
#include "api/object/pod.h"

#include <span>
#include <string>
#include <vector>

namespace spillway::lifecycle {

struct FinishedRecord {
  api::ObjectReference about;  // the owner; the last pod of the namespace, for pods without a controller
  std::string
      text;  // "12 finished pods were collected: 10 Evicted, 2 Error. The last was web-x on node n1: The node …"
};

/// One record for each owner, in order of namespace and UID; one for all pods of a namespace that have no controller.
std::vector<FinishedRecord> records_of(std::span<const api::Pod* const> collected);

}  // namespace spillway::lifecycle
