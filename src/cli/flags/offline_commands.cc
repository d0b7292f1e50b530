#include "base/followed_version.h"
#include "cli/flags/checks.h"
#include "cli/flags/commands.h"
#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

namespace spillway::cli {
namespace {

/// "60Mi/s" or "60Mi".
Result<Bytes> parse_rate(const std::string& text) {
  return parse_bytes(text.ends_with("/s") ? text.substr(0, text.size() - 2) : text);
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

/// "20", or "1..20000", both ends among them.
Result<SeedRange> parse_seeds(const std::string& text) {
  const std::size_t dots = text.find("..");
  const auto first = number_of(std::string_view(text).substr(0, dots));
  if (dots == std::string::npos) {
    if (first && *first > 0) return SeedRange{std::nullopt, *first};
  } else {
    const auto last = number_of(std::string_view(text).substr(dots + 2));
    if (first && last && *first <= *last && *last - *first < std::numeric_limits<std::uint64_t>::max())
      return SeedRange{*first, *last - *first + 1};
  }
  return make_error(ErrorCode::kInvalid, "expected a number above 0, or a range as 1..20000, got \"{}\"", text);
}

void define_demo(Commands& commands) {
  const auto demo = std::make_shared<DemoCommand>();
  CLI::App& app = commands.add("demo", "Show an eviction and a node failure on this machine, in a minute");
  app.add_flag("--keep", demo->keep, "Keep the temporary directory with database and logs");
  commands.choose(app, demo);
}

void define_doctor(Commands& commands) {
  const auto doctor = std::make_shared<DoctorCommand>();
  CLI::App& app =
      commands.add("doctor", "Check this machine and the connection to a cluster; report obstacles and their remedies");
  app.add_option("--config", doctor->config, "Also lint this KubeletConfiguration")->check(CLI::ExistingFile);
  app.add_option("--data-dir", doctor->data_dir, "Data directory of an API server here, whose certificates are checked")
      ->type_name("DIR")
      ->default_str("/var/lib/spillway as root, else ~/.local/share/spillway");
  add_parsed(app, "--port", doctor->port, parse_port, "Port that an API server would listen on", "PORT", "6443");
  add_parsed(app, "--node-port", doctor->node_port, parse_port, "Port that an agent would listen on", "PORT", "10250");
  add_client_api(app, doctor->api);
  add_output(app, doctor->output);
  add_colour(app, doctor->colour);
  app.footer("Exit codes: 0 no problem, 2 wrong command line, 3 problems, 4 warnings only.");
  commands.choose(app, doctor);
}

void define_stress(Commands& commands) {
  const auto stress = std::make_shared<StressCommand>();
  CLI::App& app = commands.add("stress", "Allocate and touch memory at a rate, then hold it");
  add_parsed(app, "--memory", stress->memory, parse_bytes, "Memory to allocate", "QUANTITY", "")->required();
  add_parsed(app, "--rate", stress->rate_per_second, parse_rate, "Memory allocated per second, e.g. 60Mi/s",
             "QUANTITY/s", "as fast as possible");
  add_duration(app, "--hold", stress->hold, "Keep the memory this long");
  commands.choose(app, stress);
}

void define_end_pods(Commands& commands) {
  const auto end_pods = std::make_shared<EndPodsCommand>();
  CLI::App& app = commands.add("end-pods", "End the pods that stopped nodes have left running on this machine");
  app.add_option("DIR", end_pods->directories, "Data directory of `spillway up`, or --state-dir of `spillway agent`")
      ->type_name("DIR")
      ->required();
  app.footer(
      "For packages and units: no agent will take these pods over any more. They get SIGTERM, and SIGKILL after 5 s.\n"
      "A containerd of `spillway up` ends with its containers; pods of other container runtimes are not touched.\n"
      "Nodes that still run are left alone.\n"
      "Exit codes: 0 all pods ended, 1 pods are left, 2 wrong command line.");
  commands.choose(app, end_pods);
}

/// The oldest minor version whose configurations are known; the newest is the followed one.
constexpr std::uint64_t kOldestMinor = 32;

/// The minor version of "1.NN"; nullopt: another text.
std::optional<std::uint64_t> minor_in(std::string_view text) {
  return text.starts_with("1.") ? number_of(text.substr(2)) : std::nullopt;
}

Result<std::optional<VersionStep>> parse_version_step(const std::string& text) {
  const std::size_t dots = text.find("..");
  const auto older = dots == std::string::npos ? std::nullopt : minor_in(std::string_view(text).substr(0, dots));
  const auto newer = dots == std::string::npos ? std::nullopt : minor_in(std::string_view(text).substr(dots + 2));
  if (!older || !newer) {
    return make_error(ErrorCode::kInvalid, "expected OLD..NEW, for example 1.{}..{}, got \"{}\"", kOldestMinor,
                      kFollowedRelease, text);
  }
  for (const std::uint64_t each : {*older, *newer}) {
    if (each >= kOldestMinor && each <= std::uint64_t{kFollowedMinor}) continue;
    return make_error(ErrorCode::kInvalid, "expected versions from 1.{} to {}, got \"{}\"", kOldestMinor,
                      kFollowedRelease, text);
  }
  if (*older >= *newer)
    return make_error(ErrorCode::kInvalid, "expected the older version first, then a newer one, got \"{}\"", text);
  return std::optional(VersionStep{.older = static_cast<int>(*older), .newer = static_cast<int>(*newer)});
}

void define_lint(Commands& commands) {
  const auto lint = std::make_shared<LintCommand>();
  CLI::App& app = commands.add("lint", "Check a KubeletConfiguration: its effects, errors and dangerous settings");
  app.add_option("FILE", lint->files,
                 "KubeletConfiguration files, each document on its own, or what a kubelet's /configz answers; -: "
                 "standard input")
      ->type_name("FILE")
      ->required();
  add_choice<LintedProgram>(app, "--for", lint->program,
                            "Program that reads the files: the kubelet implements fields that the agent does not",
                            {{"agent", LintedProgram::kAgent}, {"kubelet", LintedProgram::kKubelet}});
  CLI::Option* const versions = add_parsed(
      app, "--version", lint->versions, parse_version_step,
      "Report the members, gates and flags that change between two versions of Kubernetes. Needs --for kubelet",
      "OLD..NEW", "");
  app.add_option("--flags", lint->flag_files,
                 "Also read this file with flags of the kubelet, such as /var/lib/kubelet/kubeadm-flags.env")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->needs(versions);
  add_parsed(app, "--memory", lint->memory, parse_optional_bytes, "Memory of the node", "QUANTITY", "this machine's");
  add_parsed(app, "--disk", lint->disk, parse_optional_bytes, "Size of the node's file system", "QUANTITY",
             "this machine's");
  add_output(app, lint->output);
  app.parse_complete_callback([lint] {
    if (lint->versions && lint->program != LintedProgram::kKubelet)
      throw CLI::ValidationError("--version", "expected only together with --for kubelet");
  });
  app.footer(
      "Exit codes: 0 no findings, 2 a file is invalid or cannot be read, 3 dangerous settings, 4 warnings only.\n"
      "With --version, 2 also says that a kubelet of the newer version refuses a file.");
  commands.choose(app, lint);
}

void define_simulate(Commands& commands) {
  const auto simulate = std::make_shared<SimulateCommand>();
  CLI::App& app =
      commands.add("simulate", "Simulate a cluster with this program's own controllers and agents, in virtual time");
  app.add_option("SCENARIO", simulate->scenarios,
                 "Scenario files (docs/simulate.md), names of built-in scenarios, or all for every built-in one")
      ->type_name("FILE")
      ->required();
  app.add_option("--seed", simulate->seed, "Seed of all random choices")->default_str("the file's, else 1");
  app.add_option("--nodes", simulate->nodes, "Nodes of a generated cluster, in place of the file's")
      ->check(between(1, 200000));
  app.add_option("--zones", simulate->zones, "Zones of a generated cluster, in place of the file's")
      ->check(between(1, 1000));
  app.add_option("--brakes", simulate->brakes, "Lifecycle brakes on or off, in place of the file's setting")
      ->type_name("on|off");
  auto* const compare =
      app.add_flag("--compare", simulate->compare, "Compare two scenarios: print the first difference");
  auto* const a = app.add_option("--config-a", simulate->config_a,
                                 "Compare one scenario under this configuration and that of --config-b");
  auto* const b = app.add_option("--config-b", simulate->config_b,
                                 "The other configuration for --config-a: print the first difference");
  a->type_name("FILE")->needs(b)->excludes(compare);
  b->type_name("FILE")->needs(a)->excludes(compare);
  auto* const live = app.add_flag("--from-cluster", simulate->from_cluster,
                                  "Simulate the cluster of a kubeconfig, in place of the file's");
  app.add_option("--from-lists", simulate->from_lists,
                 "Simulate the cluster in a file of lists, each on one line as `kubectl get --raw` prints it")
      ->type_name("FILE")
      ->excludes(live);
  add_client_api(app, simulate->api);
  app.add_option("--report", simulate->report, "Write a report as one self-contained HTML file")
      ->type_name("FILE.html");
  add_output(app, simulate->output);
  app.footer(
      "Built-in scenarios: 499-of-500, clock-jump, control-plane-cut-off, half-zone-flapping,\n"
      "killed-before-tainting, lost-lease-watch, rolling-reboot, zone-outage (docs/incidents.md).\n"
      "Exit codes: 0 all expectations met, 1 the run failed, 2 wrong command line or file.\n"
      "3: an expectation failed. 5: an invariant was violated. 128 + N: ended by signal N.");
  commands.choose(app, simulate);
}

void define_advise(Commands& commands) {
  const auto advise = std::make_shared<AdviseCommand>();
  CLI::App& app =
      commands.add("advise", "Simulate scenarios and recordings under several settings, and compare their cost");
  app.add_option("SCENARIO", advise->scenarios,
                 "Scenario files (docs/simulate.md), names of built-in scenarios, or recordings (spillway record)")
      ->type_name("FILE")
      ->required();
  app.add_option("--memory-available", advise->memory_available, "Hard eviction thresholds to try, e.g. 100Mi,500Mi,5%")
      ->type_name("QUANTITY,...")
      ->delimiter(',');
  app.add_option("--system-reserved", advise->system_reserved, "Memory reserved for the system to try, e.g. 0,1Gi")
      ->type_name("QUANTITY,...")
      ->delimiter(',');
  app.add_option("--brakes", advise->brakes, "Lifecycle brakes to try: on,off")
      ->type_name("LIST")
      ->delimiter(',')
      ->check(one_of({"on", "off"}));
  app.add_option("--config", advise->configs, "Files to try; each holds members of a scenario's config:, e.g. brakes")
      ->type_name("FILE,...")
      ->delimiter(',');
  app.add_option("--seeds", advise->seeds, "Number of seeds for each scenario")
      ->check(between(1, 1000))
      ->capture_default_str();
  app.add_flag("--from-cluster", advise->from_cluster, "Simulate the cluster of a kubeconfig, in place of the files'");
  add_client_api(app, advise->api);
  add_output(app, advise->output);
  app.footer(
      "A recording of a node compares thresholds, a recording of controllers compares brakes and other settings.\n"
      "Exit codes: 0 done, 1 a run failed, 2 wrong command line or file, 5 an invariant was violated,\n"
      "128 + N ended by signal N.");
  commands.choose(app, advise);
}

void define_swarm(Commands& commands) {
  const auto swarm = std::make_shared<SwarmCommand>();
  CLI::App& app = commands.add("swarm", "Run the simulator with random seeds and faults, and check invariants");
  add_parsed(app, "--seeds", swarm->seeds, parse_seeds, "Number of seeds, or a range", "COUNT|FIRST..LAST", "20");
  app.add_option("--first-seed", swarm->first_seed, "First seed")->capture_default_str();
  app.add_option("--seed", swarm->only, "Run only this seed, with the log of all engines on standard error");
  app.add_option("--jobs", swarm->jobs, "Seeds that run at the same time; 0: one per processor")
      ->check(between(0, 256))
      ->capture_default_str();
  app.add_option("--minimise", swarm->minimise_runs,
                 "Runs spent on a smaller scenario of the first failing seed; 0: no scenario is printed")
      ->capture_default_str();
  app.add_option("--write", swarm->write, "Write the scenario of --minimise to this file, for spillway simulate")
      ->type_name("FILE");
  add_output(app, swarm->output);
  app.footer(
      "Exit codes: 0 every property (docs/properties.md) held, 2 wrong command line, 5 a property was violated,\n"
      "128 + N ended by signal N. The summary then covers the seeds that have run.");
  commands.choose(app, swarm);
}

}  // namespace

void define_offline_commands(Commands& commands) {
  define_demo(commands);
  define_doctor(commands);
  define_end_pods(commands);
  define_stress(commands);
  define_lint(commands);
  define_simulate(commands);
  define_advise(commands);
  define_swarm(commands);
}

}  // namespace spillway::cli
