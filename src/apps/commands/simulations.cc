// `spillway simulate`: virtual time, real seconds counted around it.
#include "apps/commands/commands.h"
#include "apps/commands/incident_files.h"
#include "apps/commands/simulation_report.h"
#include "runtime/clock.h"
#include "sim/incidents.h"
#include "sim/scenario.h"
#include "yaml/yaml_document.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

namespace spillway::apps {

namespace {

double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

void print_violations(const sim::Report& report) {
  for (const std::string& violation : report.violations) fmt::print("  violated: {}\n", violation);
}

/// One that comes with the program, by its name, or a file.
Result<std::vector<sim::Incident>> find_incidents(const std::string& wanted) {
  std::vector<sim::Incident> found;
  std::string names;
  for (const auto& [file, text] : kIncidentFiles) {
    SPILLWAY_TRY(yaml, yaml::parse(std::string(file), std::string(text)));
    SPILLWAY_TRY(incident, sim::parse_incident(yaml.value, std::string(file)));
    names += " " + incident.name;
    if (wanted == "all" || wanted == incident.name) found.push_back(incident);
  }
  if (!found.empty()) return found;
  if (wanted.find_first_of("./") == std::string::npos) {
    return invalid("--incident", "there is no \"{}\"; expected a file, all, or one of{}", wanted, names);
  }
  SPILLWAY_TRY(yaml, yaml::read_file(wanted));
  SPILLWAY_TRY(incident, sim::parse_incident(yaml.value, wanted));
  return std::vector{incident};
}

/// A line per incident and setting: what was done to the cluster.
int run_incidents(const cli::SimulateCommand& command, SimulationReport& recorded) {
  const auto incidents = find_incidents(command.incident);
  if (!incidents) {
    fmt::print(stderr, "spillway: {}\n", incidents.error().text());
    return cli::kExitUsage;
  }
  bool good = true;
  fmt::print("{:<24} {:>5} {:>6} {:>6} {:>6} {:>9} {:>6}  {}\n", "incident", "nodes", "brakes", "flips", "taints",
             "deletions", "took_s", "held by");
  for (const sim::Incident& incident : *incidents) {
    for (const sim::Brakes brakes : {sim::Brakes::kOff, sim::Brakes::kOn}) {
      const Instant begin = runtime::RealClock::read_mono();
      const sim::IncidentReport report = sim::run_incident(
          incident, brakes, command.seed,
          recorded.record(fmt::format("{}, brakes {}", incident.name, brakes == sim::Brakes::kOn ? "on" : "off"),
                          incident.story, command.seed));
      fmt::print("{:<24} {:>5} {:>6} {:>6} {:>6} {:>9} {:>6.1f}  {}\n", incident.name, incident.nodes,
                 brakes == sim::Brakes::kOn ? "on" : "off", report.readiness_flips, report.taints, report.deletions,
                 seconds_of(runtime::RealClock::read_mono() - begin), report.held_by.empty() ? "-" : report.held_by);
      std::fflush(stdout);
      for (const std::string& violation : report.violations) fmt::print("  violated: {}\n", violation);
      good = good && report.violations.empty();
    }
  }
  return good ? cli::kExitOk : cli::kExitFailure;
}

int run_zone_failure(const cli::SimulateCommand& command, SimulationReport& recorded) {
  const Instant begin = runtime::RealClock::read_mono();
  const sim::Report report = sim::run_zone_failure(
      {.seed = command.seed,
       .nodes = command.nodes,
       .zones = command.zones,
       .duration = command.duration,
       .observer = recorded.record("Zone outage", "One zone falls silent for half of the time, and comes back.",
                                   command.seed)});
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

}  // namespace

int run_simulate(const cli::SimulateCommand& command) {
  auto report = SimulationReport::create(command.report);
  if (!report) {
    fmt::print(stderr, "spillway: {}\n", report.error().text());
    return cli::kExitUsage;
  }
  const int code = command.incident.empty() ? run_zone_failure(command, *report) : run_incidents(command, *report);
  if (code == cli::kExitUsage) return code;
  const Outcome written = report->write();
  if (!written) fmt::print(stderr, "spillway: the report was not written: {}\n", written.error().text());
  return written ? code : cli::kExitFailure;
}

}  // namespace spillway::apps
