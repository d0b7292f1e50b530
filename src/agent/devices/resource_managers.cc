#include "agent/devices/resource_managers.h"

#include "agent/devices/pinning_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace spillway::agent {
namespace {

Error not_restored(const Error& error, std::string_view manager, std::string_view file) {
  return Error{ErrorCode::kInvalid,
               fmt::format("could not restore state from checkpoint: {}, please drain this node and delete the {} "
                           "manager checkpoint file \"{}\" before restarting Kubelet",
                           error.message, manager, file),
               {}};
}

Result<std::optional<admission::StaticCpus>> make_cpus(const AgentOptions& options, const MachineInfo& machine,
                                                       const std::optional<std::string>& saved) {
  admission::CpuOptions wanted = options.managers.cpus;
  for (const api::ResourceList* list : {&options.system_reserved, &options.kube_reserved}) {
    const auto cpu = list->find("cpu");
    if (cpu != list->end()) wanted.reserved_milli += cpu->second.milli_value();
  }
  auto setup = admission::parse_cpus(wanted, machine.cpus);
  if (!setup) return invalid("cpuManagerPolicy", "{}", setup.error().text());
  std::optional<admission::CpuAssignments> before;
  if (saved) {
    auto read = parse_cpu_state(*saved, wanted.policy);
    if (!read) return not_restored(read.error(), "CPU", kCpuStateFile);
    before = *std::move(read);
  }
  if (!*setup) return std::optional<admission::StaticCpus>();
  auto cpus = admission::StaticCpus::create(**std::move(setup), before);
  if (!cpus) return not_restored(cpus.error(), "CPU", kCpuStateFile);
  return std::optional<admission::StaticCpus>(*std::move(cpus));
}

Result<std::optional<admission::StaticMemory>> make_memory(const AgentOptions& options, const MachineInfo& machine,
                                                           const api::ResourceList& reservation,
                                                           const std::optional<std::string>& saved) {
  auto setup = admission::parse_memory(options.managers.memory, machine.numa, reservation);
  if (!setup) return invalid("memoryManagerPolicy", "{}", setup.error().text());
  std::optional<admission::MemoryAssignments> before;
  if (saved) {
    auto read = parse_memory_state(*saved, options.managers.memory.policy);
    if (!read) return not_restored(read.error(), "memory", kMemoryStateFile);
    before = *std::move(read);
  }
  if (!*setup) return std::optional<admission::StaticMemory>();
  auto memory = admission::StaticMemory::create(**setup, before);
  if (!memory) return not_restored(memory.error(), "memory", kMemoryStateFile);
  return std::optional<admission::StaticMemory>(*std::move(memory));
}

}  // namespace

Result<Pinning> make_pinning(const AgentOptions& options, const MachineInfo& machine,
                             const api::ResourceList& reservation, const Checkpoints& checkpoints) {
  const auto nodes = std::max<std::size_t>(1, machine.numa.memory.size());
  auto topology = admission::parse_topology(
      options.managers.topology, {.nodes_count = static_cast<int>(nodes), .distances = machine.numa.distances});
  if (!topology) return invalid("topologyManagerPolicy", "{}", topology.error().text());
  SPILLWAY_TRY(cpus, make_cpus(options, machine, checkpoints.cpus));
  SPILLWAY_TRY(memory, make_memory(options, machine, reservation, checkpoints.memory));
  return Pinning{.topology = *std::move(topology), .cpus = std::move(cpus), .memory = std::move(memory)};
}

ResourceManagers::ResourceManagers(AgentContext& context, DeviceManager& devices, Pinning pinning)
    : context_(context), devices_(devices), pinning_(std::move(pinning)) {}

void ResourceManagers::start() {
  save();
}

void ResourceManagers::save() {
  if (pinning_.cpus) {
    const admission::CpuAssignments& cpus = pinning_.cpus->assignments();
    context_.host_commands.emplace_back(SaveCheckpoint{std::string(kCpuStateFile), to_text(cpus)});
    if (cpus.shared != shared_sent_) context_.host_commands.emplace_back(ShareCpus{cpus.shared.text()});
    shared_sent_ = cpus.shared;
  }
  if (pinning_.memory) {
    context_.host_commands.emplace_back(
        SaveCheckpoint{std::string(kMemoryStateFile), to_text(pinning_.memory->assignments())});
  }
}

admission::Answer ResourceManagers::allocate(const api::Pod& pod) {
  std::vector<admission::HintProvider*> providers{&devices_};
  if (pinning_.cpus) providers.push_back(&*pinning_.cpus);
  if (pinning_.memory) providers.push_back(&*pinning_.memory);
  admission::TopologyAnswer taken = admission::admit_topology(pinning_.topology, pod, providers);
  save();
  if (!taken.refusal) return {};
  admission::Answer answer = admission::refuse(taken.refusal->reason, taken.refusal->message, std::move(taken.why));
  std::ranges::move(taken.considered, std::back_inserter(answer.reasons));
  return answer;
}

Cpuset ResourceManagers::cpuset_of(const std::string& uid, const std::string& container) const {
  Cpuset set;
  if (pinning_.cpus) {
    set.cpus = pinning_.cpus->cpus_of(uid, container).text();
    set.shares = !pinning_.cpus->is_exclusive(uid, container);
  }
  if (pinning_.memory) {
    admission::CpuSet nodes;
    for (const int node : pinning_.memory->nodes_of(uid, container)) nodes.add(node);
    set.memory_nodes = nodes.text();
  }
  return set;
}

HeldParts ResourceManagers::held_by(const std::string& uid, const std::string& container) const {
  HeldParts held{.devices = devices_.held_by(uid, container), .cpus = {}, .memory = {}};
  if (pinning_.cpus && pinning_.cpus->is_exclusive(uid, container))
    for (const int cpu : pinning_.cpus->cpus_of(uid, container)) held.cpus.push_back(cpu);
  if (!pinning_.memory) return held;
  const auto& all = pinning_.memory->assignments().held;
  const auto pod = all.find(uid);
  if (pod == all.end()) return held;
  const auto blocks = pod->second.find(container);
  if (blocks == pod->second.end()) return held;
  for (const admission::MemoryBlock& each : blocks->second)
    held.memory.push_back({each.resource, each.size_bytes, {each.nodes.begin(), each.nodes.end()}});
  return held;
}

HeldParts ResourceManagers::allocatable() const {
  HeldParts all{.devices = devices_.healthy(), .cpus = {}, .memory = {}};
  if (pinning_.cpus)
    for (const int cpu : pinning_.cpus->assignable()) all.cpus.push_back(cpu);
  if (!pinning_.memory) return all;
  for (const auto& [node, numa] : pinning_.memory->assignments().nodes)
    for (const auto& [resource, table] : numa.tables)
      if (table.allocatable > 0) all.memory.push_back({resource, table.allocatable, {node}});
  return all;
}

void ResourceManagers::release(const std::string& uid) {
  devices_.release(uid);
  const bool cpus = pinning_.cpus && pinning_.cpus->release(uid);
  const bool memory = pinning_.memory && pinning_.memory->release(uid);
  if (cpus || memory) save();
}

void ResourceManagers::keep_only(const std::set<std::string, std::less<>>& uids) {
  devices_.keep_only(uids);
  const bool cpus = pinning_.cpus && pinning_.cpus->keep_only(uids);
  const bool memory = pinning_.memory && pinning_.memory->keep_only(uids);
  if (cpus || memory) save();
}

api::Json ResourceManagers::state(Now now) const {
  api::Json state =
      api::Json::object({{"devices", devices_.state(now)}, {"topologyPolicy", to_string(pinning_.topology.policy)}});
  if (pinning_.cpus) {
    api::Json held = api::Json::object();
    for (const auto& [uid, containers] : pinning_.cpus->assignments().held) {
      for (const auto& [container, cpus] : containers) held[uid + "/" + container] = cpus.text();
    }
    state["cpus"] =
        api::Json::object({{"shared", pinning_.cpus->assignments().shared.text()}, {"exclusive", std::move(held)}});
  }
  if (pinning_.memory) {
    api::Json nodes = api::Json::object();
    for (const auto& [node, numa] : pinning_.memory->assignments().nodes) {
      api::Json free = api::Json::object();
      for (const auto& [resource, table] : numa.tables) free[resource] = table.free;
      nodes[fmt::format("{}", node)] = std::move(free);
    }
    state["freeNumaMemoryBytes"] = std::move(nodes);
  }
  return state;
}

}  // namespace spillway::agent
