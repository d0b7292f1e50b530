// `spillway simulate` and `spillway swarm`: virtual time, real seconds counted around it.
#include "apps/commands.h"
#include "runtime/clock.h"
#include "sim/incidents.h"
#include "sim/scenario.h"

#include <fmt/format.h>

#include <cstdio>

namespace spillway::apps {

namespace {

double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

void print_violations(const sim::Report& report) {
  for (const std::string& violation : report.violations) fmt::print("  violated: {}\n", violation);
}

/// A line per incident and setting: what was done to the cluster.
int run_incidents(const cli::SimulateCommand& command) {
  bool found = false;
  bool good = true;
  fmt::print("{:<24} {:>5} {:>6} {:>6} {:>6} {:>9}  {}\n", "incident", "nodes", "brakes", "flips", "taints",
             "deletions", "held by");
  for (const sim::Incident& incident : sim::incidents()) {
    if (command.incident != "all" && command.incident != incident.name) continue;
    found = true;
    for (const sim::Brakes brakes : {sim::Brakes::kOff, sim::Brakes::kOn}) {
      const sim::IncidentReport report = sim::run_incident(incident, brakes, command.seed);
      fmt::print("{:<24} {:>5} {:>6} {:>6} {:>6} {:>9}  {}\n", incident.name, incident.nodes,
                 brakes == sim::Brakes::kOn ? "on" : "off", report.readiness_flips, report.taints, report.deletions,
                 report.held_by.empty() ? "-" : report.held_by);
      std::fflush(stdout);
      for (const std::string& violation : report.violations) fmt::print("  violated: {}\n", violation);
      good = good && report.violations.empty();
    }
  }
  if (!found) {
    std::string names;
    for (const sim::Incident& incident : sim::incidents()) names += fmt::format(" {}", incident.name);
    fmt::print(stderr, "spillway: --incident: there is no \"{}\"; expected all or one of{}\n", command.incident, names);
    return cli::kExitUsage;
  }
  return good ? cli::kExitOk : cli::kExitFailure;
}

}  // namespace

int run_simulate(const cli::SimulateCommand& command) {
  if (!command.incident.empty()) return run_incidents(command);
  const Instant begin = runtime::RealClock::read_mono();
  const sim::Report report = sim::run_zone_failure(
      {.seed = command.seed, .nodes = command.nodes, .zones = command.zones, .duration = command.duration});
  const double real = seconds_of(runtime::RealClock::read_mono() - begin);
  fmt::print("{}\n", report.summary);
  fmt::print("  {} messages, {} writes, {} events; at most {} nodes tainted NoExecute\n", report.messages,
             report.writes, report.events, report.tainted_nodes_max);
  fmt::print("  {:.0f} s of virtual time in {:.1f} s: {:.0f} virtual seconds per real second\n",
             seconds_of(command.duration), real, seconds_of(command.duration) / real);
  fmt::print("  trace hash {} (seed {})\n", report.trace_hash, command.seed);
  print_violations(report);
  return report.violations.empty() ? cli::kExitOk : cli::kExitFailure;
}

int run_swarm(const cli::SwarmCommand& command) {
  const std::uint64_t first = command.only.value_or(command.first_seed);
  const std::uint64_t count = command.only ? 1 : command.seeds;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Instant begin = runtime::RealClock::read_mono();
    const sim::Report report = sim::run_swarm_seed(seed);
    fmt::print("{} seed {:>6} trace {} {:>6} writes {:>7} messages {:>5.1f} s  {}\n",
               report.violations.empty() ? "pass" : "FAIL", seed, report.trace_hash, report.writes, report.messages,
               seconds_of(runtime::RealClock::read_mono() - begin), report.summary);
    std::fflush(stdout);
    if (report.violations.empty()) continue;
    print_violations(report);
    fmt::print("replay: ./dev swarm --seed {}\n", seed);
    return cli::kExitFailure;
  }
  fmt::print("{} passed, 0 failed\n", count);
  return cli::kExitOk;
}

}  // namespace spillway::apps
