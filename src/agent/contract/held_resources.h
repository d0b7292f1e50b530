// The parts of a node that containers hold for themselves, as the pod-resources API reports them.
// Thread: any (plain values). Source: Kubernetes docs, "Device Plugins", monitoring device plugin resources.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::agent {

/// One device; with several NUMA nodes it is reported once for each of them.
struct HeldDevice {
  std::string resource;
  std::string id;
  std::vector<std::int64_t> numa_nodes;  // empty: unknown

  friend bool operator==(const HeldDevice&, const HeldDevice&) = default;
};

struct HeldMemory {
  std::string type;  // "memory", "hugepages-2Mi"
  std::int64_t size_bytes = 0;
  std::vector<std::int64_t> numa_nodes;

  friend bool operator==(const HeldMemory&, const HeldMemory&) = default;
};

struct HeldParts {
  std::vector<HeldDevice> devices;
  std::vector<std::int64_t> cpus;  // processors that the container has to itself
  std::vector<HeldMemory> memory;

  friend bool operator==(const HeldParts&, const HeldParts&) = default;
};

struct ContainerParts {
  std::string name;
  HeldParts held;
};

struct PodParts {
  std::string ns;
  std::string name;
  std::vector<ContainerParts> containers;
};

}  // namespace spillway::agent
