#include "sim/scenario/machine_actions.h"

#include "sim/scenario/expectation.h"

#include <algorithm>
#include <type_traits>
#include <variant>

namespace spillway::sim {
namespace {

/// The rate per second; a change with a duration grows evenly.
std::int64_t rate_of(Duration over, std::int64_t grows, std::int64_t given) {
  if (over <= Duration::zero()) return given;
  return std::max<std::int64_t>(
      static_cast<std::int64_t>(static_cast<double>(grows) / std::chrono::duration<double>(over).count()), 0);
}

template <typename Act>
constexpr bool kIsOfMachines = std::is_invocable_v<MachineActions&, const Act&>;

}  // namespace

bool has_ended(const api::Pod& pod) {
  return pod.status.phase == "Failed" || pod.status.phase == "Succeeded";
}

bool MachineActions::can_act(const Action& action) {
  return std::visit([](const auto& each) { return kIsOfMachines<std::decay_t<decltype(each)>>; }, action);
}

bool MachineActions::carry_out(const Action& action) {
  return std::visit(
      [this](const auto& each) {
        if constexpr (kIsOfMachines<std::decay_t<decltype(each)>>) {
          (*this)(each);
          return true;
        } else {
          return false;
        }
      },
      action);
}

bool MachineActions::take_back(const Action& action) {
  if (const auto* partition = std::get_if<PartitionNodes>(&action)) {
    (*this)(HealNodes{partition->nodes});
  } else if (const auto* crash = std::get_if<CrashNodes>(&action)) {
    (*this)(RestartNodes{crash->nodes});
  } else if (const auto* memory = std::get_if<UseMemory>(&action)) {
    for_each(memory->pods, [this](const std::string& uid, SimHost& machine) {
      if (const auto before = used_before_.find(uid); before != used_before_.end())
        machine.use_memory(uid, before->second, Bytes{0});
    });
  } else if (const auto* clocks = std::get_if<JumpMachineClocks>(&action)) {
    (*this)(JumpMachineClocks{clocks->nodes, -clocks->by});
  } else if (const auto* links = std::get_if<WorsenLinks>(&action)) {
    for (const std::size_t node : nodes_of(links->nodes)) machines_.restore_link_of(node);
  } else if (const auto* endings = std::get_if<HoldEndings>(&action)) {
    for_each(endings->pods,
             [](const std::string& uid, SimHost& machine) { machine.set_ending(uid, SimHost::Ending::kPrompt); });
  } else if (const auto* images = std::get_if<KeepImages>(&action)) {
    (*this)(KeepImages{images->nodes, Bytes{0}});
  } else if (const auto* disks = std::get_if<SlowDisks>(&action)) {
    (*this)(SlowDisks{disks->nodes, Duration()});
  } else if (const auto* disk = std::get_if<FillDisk>(&action)) {
    for_each(disk->pods, [this](const std::string& uid, SimHost& machine) {
      if (const auto before = disk_before_.find(uid); before != disk_before_.end())
        machine.use_disk(uid, before->second, Bytes{0});
    });
  } else if (const auto* files = std::get_if<ReadFiles>(&action)) {
    for_each(files->pods, [](const std::string& uid, SimHost& machine) { machine.read_files(uid, {}); });
  } else if (const auto* fork = std::get_if<ForkProcesses>(&action)) {
    for_each(fork->pods, [this](const std::string& uid, SimHost& machine) {
      if (const auto before = processes_before_.find(uid); before != processes_before_.end())
        machine.fork_processes(uid, before->second, 0);
    });
  } else {
    return can_act(action);
  }
  return true;
}

void MachineActions::operator()(const PartitionNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) machines_.partition_node(node, action.cut);
}

void MachineActions::operator()(const HealNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) machines_.heal_node(node);
}

void MachineActions::operator()(const CrashNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) machines_.crash_node(node);
}

void MachineActions::operator()(const RestartNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) machines_.restart_node(node);
}

void MachineActions::operator()(const RollingReboot& action) {
  Duration begins{};
  for (const std::size_t node : nodes_of(action.nodes)) {
    machines_.time().after(begins, [this, node] { machines_.crash_node(node); });
    machines_.time().after(begins + action.away, [this, node] { machines_.restart_node(node); });
    begins += action.interval;
  }
}

void MachineActions::operator()(const UseMemory& action) {
  for_each(action.pods, [&](const std::string& uid, SimHost& machine) {
    const Bytes before = machine.usage_of_pod(uid);
    used_before_.insert_or_assign(uid, before);
    const std::int64_t rate = rate_of(action.over, action.to.count() - before.count(), action.rate_per_second.count());
    machine.use_memory(uid, action.to, Bytes{rate});
  });
}

void MachineActions::operator()(const FillDisk& action) {
  for_each(action.pods, [&](const std::string& uid, SimHost& machine) {
    const Bytes before = machine.disk_of_pod(uid);
    disk_before_.insert_or_assign(uid, before);
    const std::int64_t rate = rate_of(action.over, action.to.count() - before.count(), action.rate_per_second.count());
    machine.use_disk(uid, action.to, Bytes{rate});
  });
}

void MachineActions::operator()(const ReadFiles& action) {
  for_each(action.pods, [&](const std::string& uid, SimHost& machine) {
    machine.read_files(uid, {.target = action.to,
                             .over = action.over,
                             .rate_per_second = action.rate_per_second,
                             .reading = action.again ? PageCache::Reading::kAgain : PageCache::Reading::kOnce});
  });
}

void MachineActions::operator()(const ForkProcesses& action) {
  for_each(action.pods, [&](const std::string& uid, SimHost& machine) {
    const std::int64_t before = machine.processes_of_pod(uid);
    processes_before_.insert_or_assign(uid, before);
    machine.fork_processes(uid, action.to, rate_of(action.over, action.to - before, action.rate_per_second));
  });
}

void MachineActions::operator()(const JumpClock& action) {
  machines_.time().jump_wall(action.by);
}

void MachineActions::operator()(const JumpMachineClocks& action) {
  for (const std::size_t node : nodes_of(action.nodes)) machines_.jump_clock_of(node, action.by);
}

void MachineActions::operator()(const WorsenLinks& action) {
  for (const std::size_t node : nodes_of(action.nodes)) machines_.set_link_of(node, action.link);
}

void MachineActions::operator()(const HoldEndings& action) {
  for_each(action.pods,
           [&action](const std::string& uid, SimHost& machine) { machine.set_ending(uid, action.ending); });
}

void MachineActions::operator()(const KeepImages& action) {
  for (const std::size_t node : nodes_of(action.nodes)) {
    if (SimHost* const machine = machines_.machine(node)) machine->keep_images(action.to, action.undeletable);
  }
}

void MachineActions::operator()(const SlowDisks& action) {
  for (const std::size_t node : nodes_of(action.nodes)) {
    if (SimHost* const machine = machines_.machine(node)) machine->slow_disk(action.by);
  }
}

void MachineActions::operator()(const ChangeThresholds& action) {
  for (const std::size_t node : nodes_of(action.nodes)) machines_.restart_agent(node, action.eviction);
}

std::vector<MachineActions::Chosen> MachineActions::pods_of(const PodChoice& choice) const {
  std::vector<Chosen> chosen;
  machines_.for_each_pod([&](const api::Pod& pod) {
    if (choice.first && chosen.size() == *choice.first) return false;
    if (pod.spec.node_name.empty() || has_ended(pod) || !matches_glob(choice.pods, pod.key().text())) return true;
    if (choice.label) {
      const auto label = pod.metadata.labels.find(choice.label->first);
      if (label == pod.metadata.labels.end() || label->second != choice.label->second) return true;
    }
    chosen.push_back({pod.metadata.uid, pod.spec.node_name});
    return true;
  });
  return chosen;
}

void MachineActions::for_each(const PodChoice& choice,
                              const std::function<void(const std::string& uid, SimHost& machine)>& act) {
  for (const Chosen& each : pods_of(choice)) {
    if (SimHost* const machine = machines_.machine_named(each.node)) act(each.uid, *machine);
  }
}

}  // namespace spillway::sim
