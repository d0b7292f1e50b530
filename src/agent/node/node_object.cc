#include "agent/node/node_object.h"

#include "agent/node/node_addresses.h"
#include "agent/node/node_conditions.h"
#include "agent/node/node_machine.h"
#include "api/text/resource_names.h"

#include <algorithm>
#include <array>

namespace spillway::agent {
namespace {

constexpr std::string_view kControllerManagedAttach = "volumes.kubernetes.io/controller-managed-attach-detach";
constexpr std::array<std::string_view, 12> kDefaultLabels{"kubernetes.io/hostname",
                                                          "topology.kubernetes.io/zone",
                                                          "topology.kubernetes.io/region",
                                                          "failure-domain.beta.kubernetes.io/zone",
                                                          "failure-domain.beta.kubernetes.io/region",
                                                          "node.kubernetes.io/instance-type",
                                                          "beta.kubernetes.io/instance-type",
                                                          "kubernetes.io/os",
                                                          "kubernetes.io/arch",
                                                          "node.kubernetes.io/windows-build",
                                                          "beta.kubernetes.io/os",
                                                          "beta.kubernetes.io/arch"};

std::string hostname_of(const AgentOptions& options, const MachineInfo& machine) {
  return machine.hostname.empty() ? options.node_name : machine.hostname;
}

AddressFacts address_facts(const AgentOptions& options, const MachineInfo& machine) {
  AddressFacts facts{.hostname = hostname_of(options, machine),
                     .node_ips = options.node_ips,
                     .cloud_provider = options.cloud_provider,
                     .dns_answers = {},
                     .default_route_ip = machine.internal_ip,
                     .on_host = {},
                     .loopback_allowed = true};
  if (!machine.addresses.empty()) {
    facts.on_host = [&machine](const std::string& ip) {
      return std::ranges::find(machine.addresses, ip) != machine.addresses.end();
    };
  }
  if (machine.internal_ip.empty()) facts.default_route_ip = Error{ErrorCode::kNotFound, "no default route", {}};
  return facts;
}

MachineFacts machine_facts(const AgentOptions& options, const MachineInfo& machine, const NodeFacts& facts) {
  return {.reading = MachineReading{.cpu_milli = machine.cpu_milli,
                                    .memory = machine.memory,
                                    .machine_id = machine.machine_id,
                                    .system_uuid = machine.system_uuid,
                                    .boot_id = machine.boot_id,
                                    .huge_pages = machine.huge_pages},
          .pods_max = options.pods_max,
          .pods_per_core = options.pods_per_core,
          .ephemeral_storage = api::Quantity::of_bytes(machine.ephemeral_storage),
          .devices = facts.devices,
          .reservation = facts.reservation};
}

bool reconcile_annotation(const api::Node& initial, api::Node& existing) {
  const auto wanted = initial.metadata.annotations.find(kControllerManagedAttach);
  const auto present = existing.metadata.annotations.find(kControllerManagedAttach);
  if (wanted == initial.metadata.annotations.end()) {
    return existing.metadata.annotations.erase(std::string(kControllerManagedAttach)) > 0;
  }
  if (present != existing.metadata.annotations.end() && present->second == wanted->second) return false;
  existing.metadata.annotations[std::string(kControllerManagedAttach)] = wanted->second;
  return true;
}

bool reconcile_labels(const api::Node& initial, api::Node& existing) {
  bool changed = false;
  for (const std::string_view label : kDefaultLabels) {
    const auto ours = initial.metadata.labels.find(label);
    if (ours == initial.metadata.labels.end()) continue;
    const auto theirs = existing.metadata.labels.find(label);
    const bool same = theirs == existing.metadata.labels.end() ? ours->second.empty() : theirs->second == ours->second;
    changed |= !same;
    if (ours->second.empty()) {
      existing.metadata.labels.erase(std::string(label));
    } else if (!same) {
      existing.metadata.labels[std::string(label)] = ours->second;
    }
  }
  return changed;
}

/// Copies missing resources, and zeroes extended resources if they are to be forgotten.
bool reconcile_resources(const api::NodeStatus& initial, ExtendedResources extended, api::NodeStatus& existing) {
  bool changed = false;
  for (api::ResourceList api::NodeStatus::* const list : {&api::NodeStatus::capacity, &api::NodeStatus::allocatable}) {
    if (!(existing.*list).empty() || (initial.*list).empty()) continue;
    existing.*list = initial.*list;
    changed = true;
  }
  if (extended == ExtendedResources::kKeep) return changed;
  for (auto& [resource, amount] : existing.capacity) {
    if (!api::is_extended_resource(resource)) continue;
    amount = api::Quantity();
    existing.allocatable.insert_or_assign(resource, api::Quantity());
    changed = true;
  }
  return changed;
}

/// The amount of a resource; zero if the list has none.
api::Quantity amount_in(const api::ResourceList& list, const std::string& resource) {
  const auto it = list.find(resource);
  return it == list.end() ? api::Quantity() : it->second;
}

bool put(api::ResourceList& list, const std::string& resource, const api::Quantity& amount) {
  if (amount_in(list, resource) == amount) return false;
  list.insert_or_assign(resource, amount);
  return true;
}

bool reconcile_huge_pages(const api::NodeStatus& initial, api::NodeStatus& existing) {
  bool changed = false;
  for (const auto& [resource, amount] : initial.capacity) {
    if (!api::is_hugepage_resource(resource)) continue;
    const api::Quantity allocatable = amount_in(initial.allocatable, resource);
    if (existing.capacity.contains(resource)) {
      changed |= put(existing.capacity, resource, amount);
      changed |= put(existing.allocatable, resource, allocatable);
    } else {
      existing.capacity.insert_or_assign(resource, amount);
      existing.allocatable.insert_or_assign(resource, allocatable);
      changed = true;
    }
  }
  const std::size_t gone = std::erase_if(existing.capacity, [&](const auto& entry) {
    if (!api::is_hugepage_resource(entry.first) || initial.capacity.contains(entry.first)) return false;
    existing.allocatable.erase(entry.first);
    return true;
  });
  return changed || gone > 0;
}

bool same_images(const Result<std::vector<NodeImage>>& a, const Result<std::vector<NodeImage>>& b) {
  if (a.has_value() != b.has_value()) return false;
  return a ? *a == *b : a.error() == b.error();
}

}  // namespace

bool operator==(const NodeFacts& a, const NodeFacts& b) {
  return a.reservation == b.reservation && a.devices == b.devices && a.pressure == b.pressure &&
         a.not_ready == b.not_ready && same_images(a.images, b.images) && a.runtime_handlers == b.runtime_handlers &&
         a.supplemental_groups_policy == b.supplemental_groups_policy;
}

api::Node initial_node(const AgentOptions& options, const MachineInfo& machine) {
  api::Node node;
  node.metadata.name = options.node_name;
  node.metadata.labels = {{"kubernetes.io/hostname", hostname_of(options, machine)},
                          {"kubernetes.io/os", machine.operating_system},
                          {"kubernetes.io/arch", machine.architecture},
                          {"beta.kubernetes.io/os", machine.operating_system},
                          {"beta.kubernetes.io/arch", machine.architecture}};
  for (const auto& [key, value] : options.labels) node.metadata.labels.insert_or_assign(key, value);
  if (options.attach_detach == AttachDetach::kByController) {
    node.metadata.annotations = {{std::string(kControllerManagedAttach), "true"}};
  }
  node.spec.provider_id = options.provider_id;
  node.spec.taints = options.taints;
  if (options.registration == Registration::kUnschedulable) {
    node.spec.unschedulable = true;
    const bool tainted = std::ranges::any_of(
        node.spec.taints, [](const api::Taint& taint) { return taint.key == api::kTaintNodeUnschedulable; });
    if (!tainted) {
      node.spec.taints.push_back({.key = std::string(api::kTaintNodeUnschedulable),
                                  .value = {},
                                  .effect = std::string(api::kNoSchedule),
                                  .time_added = {}});
    }
  }
  if (options.cloud_provider == CloudProvider::kExternal) {
    node.spec.taints.push_back({.key = "node.cloudprovider.kubernetes.io/uninitialized",
                                .value = "true",
                                .effect = std::string(api::kNoSchedule),
                                .time_added = {}});
  }
  return node;
}

api::ResourceList own_allocatable(const AgentOptions& options, const MachineInfo& machine,
                                  const api::ResourceList& reservation) {
  api::Node node;
  std::vector<NodeEvent> events;
  const NodeFacts facts{
      .reservation = reservation, .devices = {}, .pressure = {}, .not_ready = {}, .runtime_handlers = {}};
  set_machine_info(node, machine_facts(options, machine, facts), events);
  return std::move(node.status.allocatable);
}

StatusUpdate update_status(api::Node& node, const AgentOptions& options, const MachineInfo& machine,
                           const NodeFacts& facts, WallTime now) {
  StatusUpdate update;
  const auto keep_error = [&update](const Outcome& outcome) {
    if (!outcome) update.errors.push_back(outcome.error());
  };
  keep_error(set_addresses(node, address_facts(options, machine)));
  set_machine_info(node, machine_facts(options, machine, facts), update.events);
  keep_error(set_version_info(node, VersionFacts{.kernel_version = machine.kernel_version,
                                                 .os_image = machine.os_image,
                                                 .container_runtime_version = machine.container_runtime_version,
                                                 .agent_version = options.kubelet_version}));
  node.status.kubelet_port = options.daemon_port;
  keep_error(set_images(node, facts.images, options.status_images_max));
  set_platform(node, {.operating_system = machine.operating_system, .architecture = machine.architecture});
  set_runtime_handlers(node, facts.runtime_handlers);
  if (options.group_policies == SupplementalGroupPolicies::kOn) set_features(node, facts.supplemental_groups_policy);
  if (options.status_profile == StatusProfile::kLeases) node.status.declared_features = declared_features();
  set_volumes_in_use(node, std::vector<std::string>());  // attached volumes: no component here attaches any
  const bool legacy = options.status_profile == StatusProfile::kOutOfDisk;
  if (legacy) set_out_of_disk(node, now, update.events);
  for (const eviction::Condition condition : eviction::kConditions) {
    if (legacy && condition == eviction::Condition::kPidPressure) continue;
    const bool held = facts.pressure.contains(condition);
    set_pressure(node, condition, held ? eviction::ConditionStatus::kTrue : eviction::ConditionStatus::kFalse, now,
                 update.events);
  }
  set_ready(node, {.errors = facts.not_ready, .soft_requirements = {}, .local_storage = options.local_storage}, now,
            update.events);
  node.metadata.labels.insert_or_assign("kubernetes.io/os", machine.operating_system);
  node.metadata.labels.insert_or_assign("kubernetes.io/arch", machine.architecture);
  return update;
}

Outcome check_addresses(const AgentOptions& options, const MachineInfo& machine) {
  api::Node node;
  node.metadata.name = options.node_name;
  return set_addresses(node, address_facts(options, machine));
}

bool reconcile_node(const api::Node& initial, ExtendedResources extended, api::Node& existing) {
  bool changed = reconcile_annotation(initial, existing);
  changed |= reconcile_labels(initial, existing);
  changed |= reconcile_resources(initial.status, extended, existing.status);
  changed |= reconcile_huge_pages(initial.status, existing.status);
  return changed;
}

}  // namespace spillway::agent
