// The devices' part in the capacity and allocatable of their node.
// Thread: any (a plain value). Source: Kubernetes docs, "Device Plugins"; spec "Node agent", 4.2.
#pragma once

#include "api/object/pod.h"

#include <string>
#include <vector>

namespace spillway::agent {

struct DeviceResources {
  api::ResourceList capacity;
  api::ResourceList allocatable;
  std::vector<std::string> removed;  // their capacity becomes 0

  friend bool operator==(const DeviceResources&, const DeviceResources&) = default;
};

}  // namespace spillway::agent
