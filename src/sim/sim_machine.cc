#include "sim/sim_machine.h"

#include "base/check.h"

#include <utility>

namespace spillway::sim {

SimHost::Size size_of(const MachineSpec& machine) {
  return {machine.memory, machine.disk, machine.swap};
}

agent::MachineInfo info_of(const MachineSpec& machine, const SimHost& host) {
  agent::MachineInfo info = host.machine_info(machine.name);
  info.cpu_milli = machine.cpu_milli;
  return info;
}

agent::AgentOptions with_evictions(agent::AgentOptions options, const agent::EvictionOptions& eviction) {
  agent::EvictionOptions& to = options.eviction;
  const auto enforced = to.thresholds.enforce_pods;  // by another setting
  to.thresholds = eviction.thresholds;
  to.thresholds.enforce_pods = enforced;
  to.pressure_transition_period = eviction.pressure_transition_period;
  to.max_pod_grace_period_seconds = eviction.max_pod_grace_period_seconds;
  return options;
}

std::unique_ptr<SimMachine> boot(VirtualTime& time, const Rng& rng, Boot boot) {
  auto made = std::make_unique<SimMachine>();
  SimMachine& parts = *made;
  parts.transport = std::move(boot.transport);
  const SimHost::Deliver deliver = [&parts](auto event) {
    parts.driver->step([&parts, event = std::move(event)](Now now) { parts.agent->on_host_event(event, now); });
  };
  const bool keeps_pods = boot.host != nullptr;
  if (keeps_pods) boot.host->attach(deliver);
  parts.host = keeps_pods ? std::move(boot.host)
                          : std::make_unique<SimHost>(time, rng.fork("host"), size_of(boot.machine), deliver);
  boot.agent.node_name = boot.machine.name;
  for (const auto& [label, value] : boot.machine.labels) boot.agent.labels[label] = value;
  agent::MachineInfo info = info_of(boot.machine, *parts.host);
  info.keeps_pods = keeps_pods;
  if (boot.adjust) boot.adjust(info);
  auto agent = agent::Agent::create(std::move(boot.agent), std::move(info), rng.fork("agent"), std::move(boot.sinks),
                                    boot.history);
  SPILLWAY_CHECK(agent.has_value());
  parts.agent = *std::move(agent);
  parts.driver = std::make_unique<SimDriver>(time, *parts.agent, *parts.transport);
  return made;
}

}  // namespace spillway::sim
