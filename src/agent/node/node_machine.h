// Capacity, allocatable and identity of the machine on the Node.
// Thread: any (pure). Foreign keys of the capacity survive. Source: Kubernetes docs, "Node Status", capacity and
// allocatable; spec "Node agent", 4.2; vectors node-agent/node_status_setters.
#pragma once

#include "agent/contract/device_resources.h"
#include "agent/contract/node_event.h"
#include "agent/contract/ports.h"
#include "api/object/node.h"
#include "base/bytes.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

/// The machine's description of itself.
struct MachineReading {
  std::int64_t cpu_milli = 0;
  Bytes memory;
  std::string machine_id;
  std::string system_uuid;
  std::string boot_id;
  std::vector<HugePages> huge_pages;
};

struct MachineFacts {
  std::optional<MachineReading> reading;  // nullopt: it could not be read; cpu and memory are reported as 0
  std::int64_t pods_max = 110;
  std::int64_t pods_per_core = 0;  // 0: no limit by cores
  std::optional<api::Quantity> ephemeral_storage;
  DeviceResources devices;
  api::ResourceList reservation;
};

/// A boot id that differs from the reported one is an event, at every call until it is reported.
void set_machine_info(api::Node& node, const MachineFacts& facts, std::vector<NodeEvent>& events);

}  // namespace spillway::agent
