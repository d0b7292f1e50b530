// `spillway hollow`: nodes without machines. Arguments and files are read and checked before the first node registers.
#include "agent/contract/options.h"
#include "apps/commands/commands.h"
#include "apps/commands/hollow_part.h"
#include "apps/commands/scenario_sources.h"
#include "apps/process/process.h"
#include "apps/process/terminal.h"
#include "apps/view/remote.h"
#include "runtime/entropy.h"
#include "sim/cluster.h"
#include "sim/hollow/hollow_fleet.h"
#include "sim/scenario/config_parser.h"
#include "sim/scenario/machine_actions.h"
#include "sim/scenario/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apps {

namespace {

constexpr std::int64_t kNodes = 10;
constexpr std::size_t kWatchesOfNode = 3;  // its Node, its Pods, Services
constexpr std::size_t kStreamsOfConnection = 100;

/// An event that machines cannot carry out, or that hangs on what only a simulation sees.
Outcome check_timeline(const sim::Scenario& scenario) {
  for (const sim::TimelineEvent& event : scenario.timeline) {
    if (!sim::MachineActions::can_act(event.action))
      return invalid(scenario.file,
                     "timeline: {}: hollow nodes cannot do that; it needs a server or controllers of a simulation",
                     event.text);
    if (event.when != sim::TimelineEvent::When::kAt)
      return invalid(scenario.file, "timeline: {}: after: firstUnknown needs the controllers of a simulation",
                     event.text);
  }
  return {};
}

Result<sim::Scenario> read_hollow_scenario(const cli::HollowCommand& command) {
  if (command.scenario.empty()) {
    sim::Scenario plain;
    sim::GeneratedCluster& cluster = std::get<sim::GeneratedCluster>(plain.cluster);
    cluster.nodes = command.nodes.value_or(kNodes);
    cluster.zones = command.zones.value_or(1);
    cluster.memory = gibibytes(16);
    return plain;
  }
  SPILLWAY_TRY(scenarios,
               read_scenarios({command.scenario},
                              {.inventory = {}, .nodes = command.nodes, .zones = command.zones, .foreign_pods = true}));
  if (scenarios.size() != 1) return invalid(command.scenario, "expected one scenario, got {}", scenarios.size());
  SPILLWAY_TRY_VOID(check_timeline(scenarios.front()));
  return std::move(scenarios.front());
}

/// Parts of the scenario that belong to others: the cluster's own controllers and workloads.
void report_unused(const sim::Scenario& scenario) {
  const auto* const generated = std::get_if<sim::GeneratedCluster>(&scenario.cluster);
  std::string unused;
  const auto add = [&unused](bool given, std::string_view what) {
    if (given) unused += fmt::format("{}{}", unused.empty() ? "" : ", ", what);
  };
  add(generated == nullptr || !generated->workloads.empty(), "the workloads");
  add(scenario.control_plane != sim::ServerPlan(), "servers and etcd");
  add(scenario.faults != sim::ChanceFaults(), "faults");
  add(!scenario.expectations.empty(), "expect");
  add(scenario.rest.has_value(), "rest");
  if (!unused.empty()) print_err("spillway: {}: not used by hollow nodes: {}\n", scenario.file, unused);
}

Result<agent::AgentOptions> hollow_agent(const cli::HollowCommand& command, const sim::Scenario& scenario) {
  agent::AgentOptions options = scenario.config.agents.value_or(agent::AgentOptions());
  if (!command.config.flags.if_object()->empty()) {
    api::Json members = scenario.config.agents ? scenario.config.agents_written : api::Json::object();
    if (!members.is_object())
      return invalid(scenario.file, "config: agents is a file; give its settings there, not by flags");
    for (const auto& [name, value] : *command.config.flags.if_object()) members[name] = value;
    SPILLWAY_TRY(made, sim::agent_options_of(members));
    options = std::move(made);
  }
  for (const auto& [label, value] : command.labels) options.labels[label] = value;
  return options;
}

/// A generated node is named after the prefix, an imported one keeps its name.
std::vector<sim::MachineSpec> hollow_machines(const cli::HollowCommand& command, const sim::Scenario& scenario) {
  std::vector<sim::MachineSpec> machines = sim::machines_of(scenario);
  const bool generated = std::holds_alternative<sim::GeneratedCluster>(scenario.cluster);
  std::int64_t number = command.first_number;
  for (sim::MachineSpec& each : machines) {
    if (generated) each.name = fmt::format("{}-{:05}", command.name_prefix, number++);
    if (command.memory) each.memory = *command.memory;
    if (command.disk) each.disk = *command.disk;
    if (command.cpus) each.cpu_milli = *command.cpus * 1000;
  }
  return machines;
}

Result<HollowPartOptions> plan_hollow(const cli::HollowCommand& command) {
  SPILLWAY_TRY(scenario, read_hollow_scenario(command));
  SPILLWAY_TRY(agent, hollow_agent(command, scenario));
  HollowPartOptions plan;
  plan.names = sim::machines_of(scenario);
  plan.timeline_delay = scenario.timeline_delay;
  plan.delete_nodes = command.delete_nodes;
  plan.fleet.machines = hollow_machines(command, scenario);
  plan.fleet.first_number = static_cast<std::size_t>(command.first_number);
  plan.fleet.agent = std::move(agent);
  plan.fleet.nodes_per_second = command.nodes_per_second;
  plan.fleet.observe_interval_max = command.observe_interval;
  plan.fleet.seed = command.seed.value_or(scenario.seed.value_or(runtime::entropy()));
  if (plan.fleet.machines.size() + plan.fleet.first_number > sim::kHollowNodesMax)
    return invalid("--nodes", "expected numbers of nodes below {}, got {} from {} on", sim::kHollowNodesMax,
                   plan.fleet.machines.size(), plan.fleet.first_number);
  if (const Outcome can_start = sim::check_agents(plan.fleet.agent, plan.fleet.machines); !can_start)
    return can_start.error();
  if (!command.scenario.empty()) report_unused(scenario);
  plan.timeline = std::move(scenario.timeline);
  return plan;
}

/// Room for every watch of every node, and for the calls beside them.
wire::HttpClient::Limits limits_of(std::size_t nodes) {
  wire::HttpClient::Limits limits;
  const std::size_t streams = nodes * kWatchesOfNode;
  limits.connections_max += streams / kStreamsOfConnection + streams / kStreamsOfConnection / 4;
  limits.waiting_max = std::max(limits.waiting_max, 2 * streams);
  return limits;
}

}  // namespace

int run_hollow(const cli::LogArgs& log, const cli::HollowCommand& command) {
  const auto refuse = [](const Error& error) {
    print_error(error);
    return cli::kExitUsage;
  };
  if (const auto named = named_kubeconfigs(command.api); !named) return refuse(named.error());
  auto plan = plan_hollow(command);
  if (!plan) return refuse(plan.error());
  Process process(log, log.given ? LogReader::kProgram : LogReader::kPerson);
  auto server = connect_remote(process.loop(), command.api, limits_of(plan->fleet.machines.size()));
  if (!server) return refuse(server.error());
  plan->fleet.log = process.operator_log();
  bool nodes_left = false;
  plan->on_nodes_left = [&nodes_left](const Error& error) {
    nodes_left = true;
    print_error(error);
  };
  auto& part = process.add(std::make_unique<HollowPart>(process, *std::move(plan), *std::move(server)));
  part.start();
  const int exit_code = process.run();
  return exit_code == cli::kExitOk && nodes_left ? cli::kExitFailure : exit_code;
}

}  // namespace spillway::apps
