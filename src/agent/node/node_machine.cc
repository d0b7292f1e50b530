#include "agent/node/node_machine.h"

#include "agent/node/allocatable.h"
#include "api/text/resource_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Quantity;

void set_identity(api::Node& node, const MachineReading& reading, std::vector<NodeEvent>& events) {
  api::NodeSystemInfo& info = node.status.node_info;
  info.machine_id = reading.machine_id;
  info.system_uuid = reading.system_uuid;
  if (!info.boot_id.empty() && info.boot_id != reading.boot_id) {
    events.push_back(
        {"Rebooted", fmt::format("Node {} has been rebooted, boot id: {}", node.metadata.name, reading.boot_id), true});
  }
  info.boot_id = reading.boot_id;
}

void set_capacity(api::ResourceList& capacity, const MachineReading& reading, const MachineFacts& facts) {
  capacity.insert_or_assign("cpu", Quantity::of_milli(reading.cpu_milli));
  capacity.insert_or_assign("memory", Quantity::of_bytes(reading.memory));
  for (const HugePages& pages : reading.huge_pages) {
    capacity.insert_or_assign(huge_page_resource(pages.page_size_kib),
                              Quantity::of_bytes(kibibytes(pages.page_size_kib * pages.pages)));
  }
  const std::int64_t pods = pods_of(reading.cpu_milli, facts.pods_max, facts.pods_per_core);
  capacity.insert_or_assign("pods", Quantity::of_units(pods));
  if (facts.ephemeral_storage) capacity.insert_or_assign("ephemeral-storage", *facts.ephemeral_storage);
  for (const auto& [resource, amount] : facts.devices.capacity) capacity.insert_or_assign(resource, amount);
  for (const std::string& resource : facts.devices.removed) capacity.insert_or_assign(resource, Quantity());
}

void set_allocatable(api::NodeStatus& status, const MachineFacts& facts) {
  std::erase_if(status.allocatable, [&](const auto& entry) {
    return !status.capacity.contains(entry.first) && api::is_extended_resource(entry.first);
  });
  for (auto& [resource, amount] : without_reservation(status.capacity, facts.reservation)) {
    status.allocatable.insert_or_assign(resource, amount);
  }
  if (facts.reading) {
    for (const auto& [resource, amount] : facts.devices.allocatable) {
      status.allocatable.insert_or_assign(resource, amount);
    }
  }
  for (const auto& [resource, amount] : status.capacity) {
    if (!api::is_hugepage_resource(resource)) continue;
    Quantity& memory = status.allocatable["memory"];
    memory -= amount;
    if (memory.sign() < 0) memory = Quantity::of_units(0, memory.format());
  }
}

}  // namespace

void set_machine_info(api::Node& node, const MachineFacts& facts, std::vector<NodeEvent>& events) {
  if (facts.reading) {
    set_capacity(node.status.capacity, *facts.reading, facts);
    set_identity(node, *facts.reading, events);
  } else {
    node.status.capacity.insert_or_assign("cpu", Quantity());
    node.status.capacity.insert_or_assign("memory", Quantity::of_bytes(Bytes{0}));
    node.status.capacity.insert_or_assign("pods", Quantity::of_units(facts.pods_max));
  }
  set_allocatable(node.status, facts);
}

}  // namespace spillway::agent
