// `spillway simulate`: scenarios in virtual time, alone or two against each other.
#include "apps/commands/answer.h"
#include "apps/commands/commands.h"
#include "apps/commands/live_inventory.h"
#include "apps/commands/scenario_sources.h"
#include "apps/commands/simulation_report.h"
#include "apps/process/interruption.h"
#include "apps/process/process.h"
#include "apps/process/progress_line.h"
#include "apps/process/terminal.h"
#include "base/file.h"
#include "runtime/fast_heap.h"
#include "sim/scenario/parser.h"
#include "sim/scenario/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apps {

namespace {

/// All requested runs, read and checked before any of them is played.
class Plan {
 public:
  static Result<Plan> make(const cli::SimulateCommand& command) {
    Plan plan;
    sim::ClusterOverride instead{.inventory = {}, .nodes = command.nodes, .zones = command.zones};
    if (command.from_cluster) {
      SPILLWAY_TRY(inventory, read_live_inventory(command.api));
      instead.inventory = std::move(inventory);
    }
    if (!command.from_lists.empty()) {
      SPILLWAY_TRY(inventory, read_listed_inventory(command.from_lists));
      instead.inventory = std::move(inventory);
    }
    SPILLWAY_TRY(scenarios, read_scenarios(command.scenarios, instead));
    plan.scenarios = std::move(scenarios);
    if (command.brakes) {
      for (sim::Scenario& each : plan.scenarios) sim::set_brakes(each.config.controllers, *command.brakes);
    }
    if (!command.config_a.empty()) SPILLWAY_TRY_VOID(plan.take_configs(command));
    if (command.compare && plan.scenarios.size() != 2) {
      return invalid("--compare", "expected two scenarios, got {}", plan.scenarios.size());
    }
    return plan;
  }

  std::vector<sim::Scenario> scenarios;

 private:
  Outcome take_configs(const cli::SimulateCommand& command) {
    if (scenarios.size() != 1) return invalid("--config-a", "expected one scenario, got {}", scenarios.size());
    scenarios.push_back(scenarios.front());
    for (const auto& [file, scenario] :
         {std::pair(command.config_a, &scenarios[0]), {command.config_b, &scenarios[1]}}) {
      SPILLWAY_TRY(text, read_file(file));
      SPILLWAY_TRY(config, sim::parse_scenario_config(file, text, reader_beside(file)));
      scenario->config = std::move(config);
      scenario->name += " under " + file;
      if (const Outcome can_start = sim::check_agents(*scenario); !can_start)
        return invalid(file, "{}", can_start.error().text());
    }
    return {};
  }
};

sim::RunOutcome run_scenario(const sim::Scenario& scenario, const cli::SimulateCommand& command,
                             SimulationReport& report) {
  ProgressLine line(scenario.name, ProgressLine::Shown::kOnTerminal);
  const auto should_continue = [&line](double share) {
    line.show(share);
    return Interruption::signal() == 0;
  };
  const std::uint64_t seed = command.seed.value_or(scenario.seed.value_or(1));
  sim::RunObserver* const observer = report.record(scenario.name, scenario.story, seed);
  sim::RunOutcome outcome =
      sim::run_scenario(scenario, {.seed = seed, .observer = observer, .should_continue = should_continue});
  report.conclude(outcome);
  return outcome;
}

int exit_code_of(const std::vector<sim::RunOutcome>& outcomes) {
  if (std::ranges::any_of(outcomes, [](const auto& each) { return !each.violations.empty(); }))
    return cli::kExitInvariant;
  const bool held = std::ranges::all_of(outcomes, [](const auto& each) { return each.all_expectations_held(); });
  return held ? cli::kExitOk : cli::kExitNegative;
}

void print_outcomes(const std::vector<sim::RunOutcome>& outcomes, const cli::SimulateCommand& command) {
  const bool two = command.compare || !command.config_a.empty();
  if (!cli::is_document(command.output)) {
    if (two) print_out("{}", sim::comparison_text(outcomes[0], outcomes[1]));
    for (const sim::RunOutcome& each : outcomes) print_out("{}{}", two ? "\n" : "", sim::outcome_text(each));
    return;
  }
  api::Json document;
  if (two) {
    document = sim::comparison_json(outcomes[0], outcomes[1]);
  } else if (outcomes.size() == 1) {
    document = sim::outcome_json(outcomes.front());
  } else {
    document = api::Json::array();
    for (const sim::RunOutcome& each : outcomes) document.if_array()->push_back(sim::outcome_json(each));
  }
  print_answer(document, command.output);
}

}  // namespace

int run_simulate(const cli::SimulateCommand& command) {
  runtime::use_fast_heap();
  const auto plan = Plan::make(command);
  if (!plan) {
    print_error(plan.error());
    const bool usage = plan.error().code == ErrorCode::kInvalid || plan.error().code == ErrorCode::kNotFound;
    return usage ? cli::kExitUsage : cli::kExitFailure;
  }
  auto report = SimulationReport::create(command.report);
  if (!report) {
    print_error(report.error());
    return cli::kExitUsage;
  }
  const Interruption interruption;
  std::vector<sim::RunOutcome> outcomes;
  for (const sim::Scenario& scenario : plan->scenarios) {
    outcomes.push_back(run_scenario(scenario, command, *report));
    if (!outcomes.back().interrupted) continue;
    print_err("spillway: interrupted after {} s of virtual time of {}; nothing is reported\n",
              std::chrono::duration_cast<seconds>(outcomes.back().lasted).count(), scenario.name);
    return cli::kExitSignalBase + Interruption::signal();
  }
  print_outcomes(outcomes, command);
  if (const Outcome written = report->write(); !written) {
    print_error(written.error());
    return cli::kExitFailure;
  }
  return exit_code_of(outcomes);
}

}  // namespace spillway::apps
