#include "agent/devices/pinning_checkpoint.h"

#include "api/json/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace spillway::agent {
namespace {

using admission::CpuAssignments;
using admission::CpuSet;
using admission::MemoryAssignments;
using admission::MemoryBlock;
using admission::MemoryTable;
using admission::NumaState;
using api::Json;

std::uint32_t fnv1a32(std::string_view bytes) {
  std::uint32_t hash = 0x811c9dc5U;
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x01000193U;
  }
  return hash;
}

/// "key:value key:value".
template <typename Map, typename Print>
std::string listed(const Map& map, Print print) {
  std::vector<std::string> entries;
  for (const auto& [key, value] : map) entries.push_back(fmt::format("{}:{}", key, print(value)));
  return fmt::format("map[{}]", fmt::join(entries, " "));
}

std::uint32_t checksum_of(std::string_view policy, const CpuAssignments& cpus) {
  const std::string entries = listed(cpus.held, [](const auto& containers) {
    return listed(containers, [](const CpuSet& set) { return set.text(); });
  });
  return fnv1a32(
      fmt::format("(*state.CPUManagerCheckpoint){{PolicyName:(string){} DefaultCPUSet:(string){} "
                  "Entries:(map[string]map[string]string){} Checksum:(checksum.Checksum)0}}",
                  policy, cpus.shared.text(), entries));
}

std::string printed(const MemoryTable& table) {
  return fmt::format(
      "<*>{{TotalMemSize:(uint64){} SystemReserved:(uint64){} Allocatable:(uint64){} Reserved:(uint64){} "
      "Free:(uint64){}}}",
      table.total, table.system_reserved, table.allocatable, table.reserved, table.free);
}

std::string printed(const std::vector<MemoryBlock>& blocks) {
  std::vector<std::string> each;
  for (const MemoryBlock& block : blocks) {
    each.push_back(fmt::format("{{NUMAAffinity:([]int)[{}] Type:(v1.ResourceName){} Size:(uint64){}}}",
                               fmt::join(block.nodes, " "), block.resource, block.size_bytes));
  }
  return fmt::format("[{}]", fmt::join(each, " "));
}

std::uint32_t checksum_of(std::string_view policy, const MemoryAssignments& memory) {
  const std::string machine = listed(memory.nodes, [](const NumaState& state) {
    return fmt::format(
        "<*>{{NumberOfAssignments:(int){} MemoryMap:(map[v1.ResourceName]*state.MemoryTable){} "
        "Cells:([]int)[{}]}}",
        state.assignments_count, listed(state.tables, [](const MemoryTable& table) { return printed(table); }),
        fmt::join(state.cells, " "));
  });
  const std::string entries = listed(memory.held, [](const auto& containers) {
    return listed(containers, [](const std::vector<MemoryBlock>& blocks) { return printed(blocks); });
  });
  return fnv1a32(
      fmt::format("(*state.MemoryManagerCheckpoint){{PolicyName:(string){} MachineState:(state.NUMANodeMap){} "
                  "Entries:(state.ContainerMemoryAssignments){} Checksum:(checksum.Checksum)0}}",
                  policy, machine, entries));
}

Json numbers(const std::vector<int>& values) {
  Json list = Json::array();
  for (const int value : values) list.if_array()->emplace_back(std::int64_t{value});
  return list;
}

Error damaged() {
  return Error{ErrorCode::kInvalid, "checkpoint is corrupted", {}};
}

Result<std::vector<int>> numbers_of(const Json* list) {
  std::vector<int> values;
  if (list == nullptr || list->if_array() == nullptr) return damaged();
  for (const Json& each : *list->if_array()) {
    const auto value = each.if_int64();
    if (!value || *value < 0 || *value >= 64) return damaged();
    values.push_back(static_cast<int>(*value));
  }
  return values;
}

Result<std::int64_t> number_at(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  const auto value = found == nullptr ? std::nullopt : found->if_int64();
  if (!value) return damaged();
  return *value;
}

Result<Json> read_document(std::string_view text, std::string_view prefix, std::string_view policy) {
  auto document = api::parse_json(text);
  if (!document || document->if_object() == nullptr) return damaged();
  const std::string_view written = document->string_at({"policyName"});
  if (written != policy) {
    return invalid({}, "{}configured policy \"{}\" differs from state checkpoint policy \"{}\"", prefix, policy,
                   written);
  }
  return document;
}

/// Upstream takes a checksum of zero as well.
Outcome check(const Json& document, std::uint32_t wanted) {
  SPILLWAY_TRY(written, number_at(document, "checksum"));
  if (written != 0 && written != std::int64_t{wanted}) return damaged();
  return {};
}

Result<NumaState> read_node(const Json& document) {
  NumaState state;
  SPILLWAY_TRY(count, number_at(document, "numberOfAssignments"));
  SPILLWAY_TRY(cells, numbers_of(document.find("cells")));
  state.assignments_count = count;
  state.cells = std::move(cells);
  const Json* map = document.find("memoryMap");
  if (map == nullptr || map->if_object() == nullptr) return damaged();
  for (const auto& [resource, table] : *map->if_object()) {
    SPILLWAY_TRY(total, number_at(table, "total"));
    SPILLWAY_TRY(system_reserved, number_at(table, "systemReserved"));
    SPILLWAY_TRY(allocatable, number_at(table, "allocatable"));
    SPILLWAY_TRY(reserved, number_at(table, "reserved"));
    SPILLWAY_TRY(free, number_at(table, "free"));
    state.tables[std::string(resource)] = {total, system_reserved, allocatable, reserved, free};
  }
  return state;
}

Result<std::vector<MemoryBlock>> read_blocks(const Json& list) {
  if (list.if_array() == nullptr) return damaged();
  std::vector<MemoryBlock> blocks;
  for (const Json& each : *list.if_array()) {
    SPILLWAY_TRY(nodes, numbers_of(each.find("numaAffinity")));
    SPILLWAY_TRY(size, number_at(each, "size"));
    blocks.push_back({std::move(nodes), std::string(each.string_at({"type"})), size});
  }
  return blocks;
}

}  // namespace

std::string to_text(const CpuAssignments& cpus) {
  Json document = Json::object({{"policyName", "static"}, {"defaultCpuSet", cpus.shared.text()}});
  if (!cpus.held.empty()) {
    Json entries = Json::object();
    for (const auto& [uid, containers] : cpus.held) {
      Json& pod = entries[uid] = Json::object();
      for (const auto& [container, set] : containers) pod[container] = set.text();
    }
    document["entries"] = std::move(entries);
  }
  document["checksum"] = std::int64_t{checksum_of("static", cpus)};
  return api::to_text(document);
}

std::string to_text(const MemoryAssignments& memory) {
  Json machine = Json::object();
  for (const auto& [node, state] : memory.nodes) {
    Json tables = Json::object();
    for (const auto& [resource, table] : state.tables) {
      tables[resource] = Json::object({{"total", table.total},
                                       {"systemReserved", table.system_reserved},
                                       {"allocatable", table.allocatable},
                                       {"reserved", table.reserved},
                                       {"free", table.free}});
    }
    machine[fmt::format("{}", node)] = Json::object({{"numberOfAssignments", state.assignments_count},
                                                     {"memoryMap", std::move(tables)},
                                                     {"cells", numbers(state.cells)}});
  }
  Json document = Json::object({{"policyName", "Static"}, {"machineState", std::move(machine)}});
  if (!memory.held.empty()) {
    Json entries = Json::object();
    for (const auto& [uid, containers] : memory.held) {
      Json& pod = entries[uid] = Json::object();
      for (const auto& [container, blocks] : containers) {
        Json list = Json::array();
        for (const MemoryBlock& block : blocks) {
          list.if_array()->push_back(Json::object(
              {{"numaAffinity", numbers(block.nodes)}, {"type", block.resource}, {"size", block.size_bytes}}));
        }
        pod[container] = std::move(list);
      }
    }
    document["entries"] = std::move(entries);
  }
  document["checksum"] = std::int64_t{checksum_of("Static", memory)};
  return api::to_text(document);
}

Result<CpuAssignments> parse_cpu_state(std::string_view text, std::string_view policy) {
  SPILLWAY_TRY(document, read_document(text, "", policy));
  CpuAssignments cpus;
  const std::string_view shared = document.string_at({"defaultCpuSet"});
  auto set = CpuSet::parse(shared);
  if (!set) return invalid({}, "could not parse default cpu set \"{}\"", shared);
  cpus.shared = *std::move(set);
  if (const Json* entries = document.find("entries"); entries != nullptr && entries->if_object() != nullptr) {
    for (const auto& [uid, containers] : *entries->if_object()) {
      if (containers.if_object() == nullptr) return damaged();
      for (const auto& [container, held] : *containers.if_object()) {
        auto own = held.if_string() == nullptr ? Result<CpuSet>(damaged()) : CpuSet::parse(*held.if_string());
        if (!own) {
          return invalid({}, "could not parse cpuset \"{}\" for container \"{}\" in pod \"{}\"", api::to_text(held),
                         container, uid);
        }
        cpus.held[std::string(uid)][std::string(container)] = *std::move(own);
      }
    }
  }
  SPILLWAY_TRY_VOID(check(document, checksum_of(policy, cpus)));
  return cpus;
}

Result<MemoryAssignments> parse_memory_state(std::string_view text, std::string_view policy) {
  SPILLWAY_TRY(document, read_document(text, "[memorymanager] ", policy));
  MemoryAssignments memory;
  const Json* machine = document.find("machineState");
  if (machine == nullptr || machine->if_object() == nullptr) return damaged();
  for (const auto& [name, state] : *machine->if_object()) {
    int node = 0;
    const std::string key(name);
    const auto [end, failed] = std::from_chars(key.data(), key.data() + key.size(), node);
    if (failed != std::errc() || end != key.data() + key.size() || node < 0 || node >= 64) return damaged();
    SPILLWAY_TRY(read, read_node(state));
    memory.nodes[node] = std::move(read);
  }
  if (const Json* entries = document.find("entries"); entries != nullptr && entries->if_object() != nullptr) {
    for (const auto& [uid, containers] : *entries->if_object()) {
      if (containers.if_object() == nullptr) return damaged();
      for (const auto& [container, list] : *containers.if_object()) {
        SPILLWAY_TRY(blocks, read_blocks(list));
        memory.held[std::string(uid)][std::string(container)] = std::move(blocks);
      }
    }
  }
  SPILLWAY_TRY_VOID(check(document, checksum_of(policy, memory)));
  return memory;
}

}  // namespace spillway::agent
