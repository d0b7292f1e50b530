// A machine that is up: the product's agent over a simulated host, driven on a clock of its own. The simulated cluster
// and hollow nodes boot the same machine; they differ in the transport and in what they do between two commands.
// Thread: one.
#pragma once

#include "agent/agent.h"
#include "sim/machine_spec.h"
#include "sim/sim_driver.h"
#include "sim/sim_host.h"
#include "sim/time/virtual_time.h"

#include <functional>
#include <memory>
#include <span>
#include <string>

namespace spillway::sim {

SimHost::Size size_of(const MachineSpec& machine);

/// The facts that an agent on this host starts with.
agent::MachineInfo info_of(const MachineSpec& machine, const SimHost& host);

/// Destroyed in the reverse order, the driver first.
struct SimMachine {
  std::unique_ptr<agent::Agent> agent;
  std::unique_ptr<client::Transport> transport;
  std::unique_ptr<SimHost> host;
  std::unique_ptr<SimDriver> driver;
};

/// These options with other settings of evictions: thresholds, their grace and reclaim, and how long pressure lasts.
agent::AgentOptions with_evictions(agent::AgentOptions options, const agent::EvictionOptions& eviction);

struct Boot {
  const MachineSpec& machine;
  agent::AgentOptions agent;  // the name and the labels of the machine are added
  agent::AgentSinks sinks;
  std::span<const agent::JournalEntry> history;
  std::unique_ptr<client::Transport> transport;
  std::unique_ptr<SimHost> host;  // a host that runs already, with its pods; null: the machine boots
  /// Changes the facts before the agent sees them; empty: unchanged.
  std::function<void(agent::MachineInfo&)> adjust = {};
};

/// The machine before its first step: the caller sets the driver's hooks and starts it. The options must have passed
/// check_agents() or Agent::create() with such a machine.
std::unique_ptr<SimMachine> boot(VirtualTime& time, const Rng& rng, Boot boot);

}  // namespace spillway::sim
