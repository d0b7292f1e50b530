// The parts of a simulated cluster: machines, objects and pods, and the parts of the original that had to be left out.
// Thread: any (values).
#pragma once

#include "api/json/json.h"
#include "sim/machine_spec.h"

#include <string>
#include <vector>

namespace spillway::sim {

/// An object and the collection it is created in.
struct PlacedObject {
  std::string collection;  // "/apis/apps/v1/namespaces/default/replicasets"
  api::Json object;
};

/// An object, or a part of one, that the simulation does without.
struct LeftOut {
  std::string what;  // "Deployment default/web"
  std::string why;
};

struct Inventory {
  std::vector<MachineSpec> machines;
  std::vector<PlacedObject> objects;
  /// Bound to their nodes; created once their owners are there, whose names their ownerReferences have.
  std::vector<PlacedObject> pods;
  std::vector<LeftOut> left_out;
};

}  // namespace spillway::sim
