#include "policy/admission/static_memory.h"

#include "api/object/pod_requests.h"
#include "api/text/resource_names.h"
#include "policy/admission/init_containers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace spillway::admission {
namespace {

constexpr std::string_view kMemory = "memory";

bool is_counted(std::string_view resource) {
  return resource == kMemory || api::is_hugepage_resource(resource);
}

std::vector<int> list_of(NumaSet set) {
  std::vector<int> nodes;
  for (int node = 0; node < 64; ++node) {
    if (((set >> node) & 1U) != 0) nodes.push_back(node);
  }
  return nodes;
}

AllocationFailure because(std::string_view message) {
  return {std::nullopt, fmt::format("[memorymanager] {}", message)};
}

/// The best of several hints: a preferred one, then the narrowest, then the lowest set of nodes.
TopologyHint best_of(const std::vector<TopologyHint>& hints) {
  TopologyHint best = hints.front();
  for (const TopologyHint& hint : hints) {
    if (hint.preferred != best.preferred) {
      if (hint.preferred) best = hint;
      continue;
    }
    const int width = std::popcount(*hint.nodes);
    const int best_width = std::popcount(*best.nodes);
    if (width < best_width || (width == best_width && *hint.nodes < *best.nodes)) best = hint;
  }
  return best;
}

std::map<int, NumaState> fresh_nodes(const MemorySetup& setup) {
  std::map<int, NumaState> nodes;
  for (const auto& [node, memory] : setup.layout.memory) {
    NumaState& state = nodes[node];
    state.cells = {node};
    for (const auto& [resource, total] : memory) {
      MemoryTable& table = state.tables[resource];
      table.total = total;
      if (const auto reserved = setup.reserved.find(node); reserved != setup.reserved.end()) {
        const auto amount = reserved->second.find(resource);
        if (amount != reserved->second.end()) table.system_reserved = amount->second;
      }
      table.allocatable = std::max<std::int64_t>(0, table.total - table.system_reserved);
      table.free = table.allocatable;
    }
  }
  return nodes;
}

Outcome check_table(int node, std::string_view resource, const MemoryTable& now, const MemoryTable& before) {
  if (now.total != before.total || now.system_reserved != before.system_reserved ||
      now.allocatable != before.allocatable) {
    return invalid({}, "[memorymanager] the expected machine state is different from the real one: NUMA node {}, {}",
                   node, resource);
  }
  if (before.reserved < 0 || before.free < 0 || before.reserved + before.free != before.allocatable) {
    return invalid({}, "[memorymanager] {} of NUMA node {} does not add up in the state: {} reserved and {} free of {}",
                   resource, node, before.reserved, before.free, before.allocatable);
  }
  return {};
}

}  // namespace

Result<std::optional<MemorySetup>> parse_memory(const MemoryOptions& options, const NumaLayout& layout,
                                                const api::ResourceList& node_reservation) {
  if (options.policy == "None") return std::optional<MemorySetup>();
  if (options.policy != "Static") return invalid({}, "unknown policy: \"{}\"", options.policy);
  if (layout.memory.empty() || layout.memory.rbegin()->first >= 64) {
    return invalid({}, "[memorymanager] the NUMA nodes of this machine are not known");
  }
  std::map<std::string, std::int64_t, std::less<>> sums;
  for (const auto& [node, amounts] : options.reserved) {
    const auto known = layout.memory.find(node);
    if (known == layout.memory.end()) {
      return invalid(
          {}, "the reserved memory configuration references a NUMA node {} that does not exist on this machine", node);
    }
    for (const auto& [resource, bytes] : amounts) {
      if (!is_counted(resource)) return invalid({}, "reserved memory type \"{}\" is no memory", resource);
      const auto total = known->second.find(resource);
      if (total == known->second.end() || total->second < bytes) {
        return invalid({}, "reservedMemory: NUMA node {} has less {} than {} bytes", node, resource, bytes);
      }
      sums[resource] += bytes;
    }
  }
  std::map<std::string, std::int64_t, std::less<>> wanted;
  for (const auto& [resource, amount] : node_reservation) {
    if (is_counted(resource) && amount.value() != 0) wanted[resource] = amount.value();
  }
  std::set<std::string, std::less<>> resources;
  for (const auto* list : {&sums, &wanted}) {
    for (const auto& [resource, bytes] : *list) resources.insert(resource);
  }
  for (const std::string& resource : resources) {
    if (sums[resource] == wanted[resource]) continue;
    return invalid({},
                   "the total amount \"{}\" of type \"{}\" is not equal to the value \"{}\" determined by Node "
                   "Allocatable feature",
                   api::Quantity::of_bytes(Bytes{sums[resource]}).to_string(), resource,
                   api::Quantity::of_bytes(Bytes{wanted[resource]}).to_string());
  }
  return std::optional<MemorySetup>({.layout = layout, .reserved = options.reserved});
}

Result<StaticMemory> StaticMemory::create(const MemorySetup& setup, const std::optional<MemoryAssignments>& before) {
  StaticMemory memory;
  memory.assignments_.nodes = fresh_nodes(setup);
  if (!before || before->nodes.empty()) return memory;
  if (before->nodes.size() != memory.assignments_.nodes.size()) {
    return invalid({}, "[memorymanager] the expected machine state is different from the real one");
  }
  for (const auto& [node, state] : memory.assignments_.nodes) {
    const auto known = before->nodes.find(node);
    if (known == before->nodes.end() || known->second.tables.size() != state.tables.size()) {
      return invalid({}, "[memorymanager] the expected machine state is different from the real one");
    }
    for (const auto& [resource, table] : state.tables) {
      const auto was = known->second.tables.find(resource);
      if (was == known->second.tables.end()) {
        return invalid({}, "[memorymanager] the expected machine state is different from the real one");
      }
      SPILLWAY_TRY_VOID(check_table(node, resource, table, was->second));
    }
  }
  for (const auto& [uid, containers] : before->held) {
    for (const auto& [container, blocks] : containers) {
      for (const MemoryBlock& block : blocks) {
        for (const int node : block.nodes) {
          if (before->nodes.contains(node)) continue;
          return invalid({},
                         "[memorymanager] (pod: {}, container: {}) the memory assignment uses the NUMA that does not "
                         "exist",
                         uid, container);
        }
      }
    }
  }
  memory.assignments_ = *before;
  return memory;
}

StaticMemory::Requests StaticMemory::requests_of(const api::Pod& pod, const api::Container& container) {
  Requests requests;
  if (api::qos_of(pod) != api::QosClass::kGuaranteed || api::has_pod_level(pod.spec)) return requests;
  for (const auto& [resource, amount] : container.resources.requests) {
    if (is_counted(resource) && amount.value() > 0) requests[resource] = amount.value();
  }
  return requests;
}

const std::vector<MemoryBlock>* StaticMemory::find(std::string_view uid, std::string_view container) const {
  const auto pod = assignments_.held.find(uid);
  if (pod == assignments_.held.end()) return nullptr;
  const auto held = pod->second.find(container);
  return held == pod->second.end() ? nullptr : &held->second;
}

std::vector<int> StaticMemory::nodes_of(std::string_view uid, std::string_view container) const {
  std::set<int> nodes;
  if (const auto* blocks = find(uid, container)) {
    for (const MemoryBlock& block : *blocks) nodes.insert(block.nodes.begin(), block.nodes.end());
  }
  return {nodes.begin(), nodes.end()};
}

std::int64_t StaticMemory::reusable(const api::Pod& pod, const std::vector<int>& nodes,
                                    std::string_view resource) const {
  std::int64_t bytes = 0;
  const auto of_pod = assignments_.held.find(pod.metadata.uid);
  if (of_pod == assignments_.held.end()) return 0;
  for (const auto& [container, blocks] : of_pod->second) {
    if (!is_plain_init(pod, container)) continue;
    for (const MemoryBlock& block : blocks) {
      if (block.resource == resource && block.nodes == nodes) bytes += block.size_bytes;
    }
  }
  return bytes;
}

/// A node that serves alone cannot serve in a group, and a group is always the same one.
bool StaticMemory::is_usable(const std::vector<int>& nodes) const {
  return std::ranges::all_of(nodes, [&](int node) {
    const NumaState& state = assignments_.nodes.at(node);
    if (nodes.size() == 1) return state.cells.size() <= 1;
    return state.assignments_count == 0 || state.cells == nodes;
  });
}

std::vector<TopologyHint> StaticMemory::hints_for(const api::Pod& pod, const Requests& requests) const {
  std::vector<TopologyHint> hints;
  NumaSet every = 0;
  for (const auto& [node, state] : assignments_.nodes) every |= NumaSet{1} << node;
  int narrowest = std::popcount(every);
  for (NumaSet set = every; set != 0; set = (set - 1) & every) {
    const std::vector<int> nodes = list_of(set);
    const auto sum = [&](std::string_view resource, std::int64_t MemoryTable::* member) {
      std::int64_t bytes = 0;
      for (const int node : nodes) {
        const auto& tables = assignments_.nodes.at(node).tables;
        if (const auto table = tables.find(resource); table != tables.end()) bytes += table->second.*member;
      }
      return bytes;
    };
    const bool could = std::ranges::all_of(
        requests, [&](const auto& each) { return sum(each.first, &MemoryTable::allocatable) >= each.second; });
    if (!could) continue;
    narrowest = std::min(narrowest, std::popcount(set));
    const bool can = is_usable(nodes) && std::ranges::all_of(requests, [&](const auto& each) {
                       return sum(each.first, &MemoryTable::free) + reusable(pod, nodes, each.first) >= each.second;
                     });
    if (can) hints.push_back({set, false});
  }
  std::ranges::sort(hints, {}, [](const TopologyHint& hint) { return *hint.nodes; });
  for (TopologyHint& hint : hints) hint.preferred = std::popcount(*hint.nodes) == narrowest;
  return hints;
}

std::optional<ResourceHints> StaticMemory::container_hints(const api::Pod& pod, const api::Container& container) {
  const Requests requests = requests_of(pod, container);
  if (requests.empty()) return std::nullopt;
  ResourceHints hints;
  if (const auto* blocks = find(pod.metadata.uid, container.name)) {
    for (const MemoryBlock& block : *blocks) {
      const auto request = requests.find(block.resource);
      // Containers after an init container may have reused a part of its memory.
      const bool same =
          request != requests.end() && (request->second == block.size_bytes ||
                                        (request->second > block.size_bytes && is_plain_init(pod, container.name)));
      if (!same) return std::nullopt;
      NumaSet set = 0;
      for (const int node : block.nodes) set |= NumaSet{1} << node;
      hints[block.resource] = std::vector<TopologyHint>{{set, true}};
    }
    return hints;
  }
  const std::vector<TopologyHint> list = hints_for(pod, requests);
  for (const auto& [resource, bytes] : requests) hints[resource] = list;
  return hints;
}

std::optional<ResourceHints> StaticMemory::pod_hints(const api::Pod& pod) {
  Requests before;
  Requests lasting;
  for (const api::Container& container : pod.spec.init_containers) {
    if (find(pod.metadata.uid, container.name) != nullptr) return container_hints(pod, container);
    for (const auto& [resource, bytes] : requests_of(pod, container)) {
      before[resource] = std::max(before[resource], lasting[resource] + bytes);
      if (api::is_sidecar(container)) lasting[resource] += bytes;
    }
  }
  for (const api::Container& container : pod.spec.containers) {
    if (find(pod.metadata.uid, container.name) != nullptr) return container_hints(pod, container);
    for (const auto& [resource, bytes] : requests_of(pod, container)) lasting[resource] += bytes;
  }
  for (const auto& [resource, bytes] : before) lasting[resource] = std::max(lasting[resource], bytes);
  if (lasting.empty()) return std::nullopt;
  const std::vector<TopologyHint> list = hints_for(pod, lasting);
  ResourceHints hints;
  for (const auto& [resource, bytes] : lasting) hints[resource] = list;
  return hints;
}

bool StaticMemory::has_free(const api::Pod& pod, const Requests& requests, NumaSet set) const {
  const std::vector<int> nodes = list_of(set);
  return std::ranges::all_of(requests, [&](const auto& each) {
    std::int64_t free = reusable(pod, nodes, each.first);
    for (const int node : nodes) {
      const auto state = assignments_.nodes.find(node);
      if (state == assignments_.nodes.end()) continue;
      const auto table = state->second.tables.find(each.first);
      if (table != state->second.tables.end()) free += table->second.free;
    }
    return free >= each.second;
  });
}

/// The nodes to take from: those of the hint, or more if they do not suffice, or the best there are without a hint.
Result<TopologyHint> StaticMemory::pick(const api::Pod& pod, const Requests& requests, const TopologyHint& hint) const {
  TopologyHint chosen = hint;
  if (!chosen.nodes) {
    const std::vector<TopologyHint> hints = hints_for(pod, requests);
    if (hints.empty()) {
      return invalid({}, "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available");
    }
    chosen = best_of(hints);
    if (!chosen.preferred && hint.preferred) return invalid({}, "failed to find the default preferred hint");
  }
  if (!has_free(pod, requests, *chosen.nodes)) {
    std::vector<TopologyHint> wider = hints_for(pod, requests);
    std::erase_if(wider, [&](const TopologyHint& each) { return (*each.nodes & *chosen.nodes) != *chosen.nodes; });
    if (wider.empty()) return invalid({}, "failed to find NUMA nodes to extend the current topology hint");
    const TopologyHint extended = best_of(wider);
    if (!extended.preferred && chosen.preferred) return invalid({}, "failed to find the extended preferred hint");
    chosen = extended;
  }
  const std::vector<int> nodes = list_of(*chosen.nodes);
  const bool known = std::ranges::all_of(nodes, [this](int node) { return assignments_.nodes.contains(node); });
  if (!known || !is_usable(nodes)) return invalid({}, "preferred hint violates NUMA node allocation");
  return chosen;
}

std::optional<AllocationFailure> StaticMemory::allocate(const api::Pod& pod, const api::Container& container,
                                                        const TopologyHint& hint) {
  const Requests requests = requests_of(pod, container);
  if (requests.empty() || find(pod.metadata.uid, container.name) != nullptr) return std::nullopt;
  const auto picked = pick(pod, requests, hint);
  if (!picked) return because(picked.error().message);
  std::vector<MemoryBlock> blocks;
  for (const auto& [resource, bytes] : requests) {
    MemoryBlock block{list_of(*picked->nodes), resource, bytes};
    reserve(block, bytes - reuse(pod, container, block));
    blocks.push_back(std::move(block));
  }
  assignments_.held[pod.metadata.uid][container.name] = std::move(blocks);
  return std::nullopt;
}

/// Takes over what init containers before this one hold of the same nodes; how much that is.
std::int64_t StaticMemory::reuse(const api::Pod& pod, const api::Container& container, const MemoryBlock& block) {
  std::int64_t taken = 0;
  const auto of_pod = assignments_.held.find(pod.metadata.uid);
  if (of_pod == assignments_.held.end()) return 0;
  for (const api::Container& init : pod.spec.init_containers) {
    if (init.name == container.name) break;
    const auto held = of_pod->second.find(init.name);
    if (api::is_sidecar(init) || held == of_pod->second.end()) continue;
    for (MemoryBlock& each : held->second) {
      if (each.resource != block.resource || each.nodes != block.nodes) continue;
      const std::int64_t some = std::min(each.size_bytes, block.size_bytes - taken);
      each.size_bytes -= some;
      taken += some;
    }
  }
  return taken;
}

void StaticMemory::reserve(const MemoryBlock& block, std::int64_t size_bytes) {
  for (const int node : block.nodes) {
    NumaState& state = assignments_.nodes.at(node);
    ++state.assignments_count;
    state.cells = block.nodes;
    const auto table = state.tables.find(block.resource);
    if (table == state.tables.end()) continue;
    const std::int64_t some = std::min(size_bytes, table->second.free);
    table->second.free -= some;
    table->second.reserved += some;
    size_bytes -= some;
  }
}

void StaticMemory::give_back(const MemoryBlock& block) {
  std::int64_t size_bytes = block.size_bytes;
  for (const int node : block.nodes) {
    NumaState& state = assignments_.nodes.at(node);
    if (--state.assignments_count == 0) state.cells = {node};
    const auto table = state.tables.find(block.resource);
    if (table == state.tables.end()) continue;
    const std::int64_t some = std::min(size_bytes, table->second.reserved);
    table->second.reserved -= some;
    table->second.free += some;
    size_bytes -= some;
  }
}

bool StaticMemory::release(std::string_view uid) {
  const auto pod = assignments_.held.find(uid);
  if (pod == assignments_.held.end()) return false;
  for (const auto& [container, blocks] : pod->second) {
    for (const MemoryBlock& block : blocks) give_back(block);
  }
  assignments_.held.erase(pod);
  return true;
}

bool StaticMemory::keep_only(const std::set<std::string, std::less<>>& uids) {
  std::vector<std::string> gone;
  for (const auto& [uid, blocks] : assignments_.held) {
    if (!uids.contains(uid)) gone.push_back(uid);
  }
  for (const std::string& uid : gone) release(uid);
  return !gone.empty();
}

}  // namespace spillway::admission
