#include "cli/flags/commands.h"
#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace spillway::cli {
namespace {

/// "60Mi/s" or "60Mi".
Result<Bytes> parse_rate(const std::string& text) {
  return parse_bytes(text.ends_with("/s") ? text.substr(0, text.size() - 2) : text);
}

void define_demo(Commands& commands) {
  const auto demo = std::make_shared<DemoCommand>();
  CLI::App& app = commands.add("demo", "Show an eviction and a node failure on this machine, in a minute");
  app.add_flag("--keep", demo->keep, "Leave the temporary directory with database and logs");
  commands.choose(app, demo);
}

void define_stress(Commands& commands) {
  const auto stress = std::make_shared<StressCommand>();
  CLI::App& app = commands.add("stress", "Allocate and touch memory at a rate, then hold it");
  add_parsed(app, "--memory", stress->memory, parse_bytes, "How much", "QUANTITY", "")->required();
  add_parsed(app, "--rate", stress->rate_per_second, parse_rate, "How fast, e.g. 60Mi/s", "QUANTITY/s",
             "as fast as possible");
  add_duration(app, "--hold", stress->hold, "How long it is kept");
  commands.choose(app, stress);
}

void define_lint(Commands& commands) {
  const auto lint = std::make_shared<LintCommand>();
  CLI::App& app = commands.add("lint", "Say what a KubeletConfiguration does, and what in it is wrong or dangerous");
  app.add_option("FILE", lint->files, "KubeletConfiguration files, each on its own")->required();
  add_parsed(app, "--memory", lint->memory, parse_optional_bytes, "Memory of the node", "QUANTITY", "this machine's");
  add_parsed(app, "--disk", lint->disk, parse_optional_bytes, "Size of the node's file system", "QUANTITY",
             "this machine's");
  add_output(app, lint->output);
  app.footer("Exit codes: 0 nothing to say, 1 dangerous, 2 invalid, 3 a file cannot be read, 4 warnings only.");
  commands.choose(app, lint);
}

void define_simulate(Commands& commands) {
  const auto simulate = std::make_shared<SimulateCommand>();
  CLI::App& app = commands.add("simulate", "Play what would happen to a cluster, on the product in virtual time");
  app.add_option("SCENARIO", simulate->scenarios,
                 "Files (docs/simulate.md), or names of scenarios that come with the program, or all of these")
      ->required();
  app.add_option("--seed", simulate->seed, "Everything random comes from it")->default_str("the file's, else 1");
  app.add_option("--nodes", simulate->nodes, "Nodes of a generated cluster, in place of the file's")
      ->check(CLI::Range(1, 200000));
  app.add_option("--zones", simulate->zones, "Zones of a generated cluster, in place of the file's")
      ->check(CLI::Range(1, 1000));
  app.add_option("--brakes", simulate->brakes, "Lifecycle brakes on or off, whatever the file says");
  auto* const compare = app.add_flag("--compare", simulate->compare, "Two scenarios: what differs first");
  auto* const a = app.add_option("--config-a", simulate->config_a, "One scenario under this configuration …");
  auto* const b = app.add_option("--config-b", simulate->config_b, "… and under this one: what differs first");
  a->type_name("FILE")->needs(b)->excludes(compare);
  b->type_name("FILE")->needs(a)->excludes(compare);
  app.add_flag("--from-cluster", simulate->from_cluster, "The cluster of a kubeconfig, in place of the file's");
  add_client_api(app, simulate->api);
  app.add_option("--report", simulate->report,
                 "Write what happened as one HTML file that opens in any browser and loads nothing")
      ->type_name("FILE.html");
  add_output(app, simulate->output);
  app.footer(
      "Exit codes: 0 everything held, 1 could not be done, 2 wrong command line or file, 3 an expectation failed,\n"
      "4 an invariant of the product was violated, 128 + N ended by signal N.");
  commands.choose(app, simulate);
}

void define_swarm(Commands& commands) {
  const auto swarm = std::make_shared<SwarmCommand>();
  CLI::App& app = commands.add("swarm", "Run random seeds with faults in the simulator against invariants");
  app.add_option("--seeds", swarm->seeds, "How many")->check(above_zero())->capture_default_str();
  app.add_option("--first-seed", swarm->first_seed, "The first of them")->capture_default_str();
  app.add_option("--seed", swarm->only, "Replay this one seed; the log of all its engines goes to standard error");
  app.add_option("--jobs", swarm->jobs, "Seeds at a time; 0: one per processor")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  commands.choose(app, swarm);
}

}  // namespace

void define_offline_commands(Commands& commands) {
  define_demo(commands);
  define_stress(commands);
  define_lint(commands);
  define_simulate(commands);
  define_swarm(commands);
}

}  // namespace spillway::cli
