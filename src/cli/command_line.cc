#include "cli/command_line.h"

#include "api/duration.h"
#include "api/quantity.h"
#include "base/edit_distance.h"
#include "policy/eviction/threshold_parse.h"

#include <CLI/CLI.hpp>
#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace spillway::cli {
namespace {

/// A flag whose text is parsed by one of our own parsers; its error becomes CLI11's.
template <typename T, typename Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& flag, T& into, Parse parse, const std::string& help,
                        const std::string& type, const std::string& shown_default) {
  CLI::Option* option = app.add_option_function<std::string>(
      flag,
      [&into, parse, flag](const std::string& text) {
        auto parsed = parse(text);
        if (!parsed) throw CLI::ValidationError(flag, parsed.error().text());
        into = *std::move(parsed);
      },
      help);
  option->type_name(type);
  if (!shown_default.empty()) option->default_str(shown_default);
  return option;
}

Result<Duration> parse_positive_duration(const std::string& text) {
  SPILLWAY_TRY(duration, api::parse_duration(text));
  if (duration <= Duration::zero()) return make_error(ErrorCode::kInvalid, "must be positive, got \"{}\"", text);
  return duration;
}

Result<std::optional<Duration>> parse_optional_duration(const std::string& text) {
  SPILLWAY_TRY(duration, parse_positive_duration(text));
  return std::optional<Duration>(duration);
}

CLI::Option* add_duration(CLI::App& app, const std::string& flag, Duration& into, const std::string& help) {
  return add_parsed(app, flag, into, parse_positive_duration, help, "DURATION", api::format_duration(into));
}

Result<Bytes> parse_bytes(const std::string& text) {
  const auto quantity = api::parse_quantity(text);
  if (!quantity) {
    return make_error(ErrorCode::kInvalid, "\"{}\" is no quantity; expected for example 256Mi or 1Gi", text);
  }
  if (quantity->sign() <= 0) return make_error(ErrorCode::kInvalid, "must be positive, got \"{}\"", text);
  return quantity->bytes();
}

Result<std::optional<Bytes>> parse_optional_bytes(const std::string& text) {
  SPILLWAY_TRY(bytes, parse_bytes(text));
  return std::optional<Bytes>(bytes);
}

Result<std::string> parse_address(const std::string& text) {
  in6_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) == 1 || inet_pton(AF_INET6, text.c_str(), &address) == 1) return text;
  return make_error(ErrorCode::kInvalid, "\"{}\" is no address; expected for example 192.0.2.7 or 2001:db8::7", text);
}

/// "60Mi/s" or "60Mi".
Result<Bytes> parse_rate(const std::string& text) {
  return parse_bytes(text.ends_with("/s") ? text.substr(0, text.size() - 2) : text);
}

Result<std::vector<std::pair<std::string, std::string>>> parse_labels(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> labels;
  for (const std::string& pair : CLI::detail::split(text, ',')) {
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return make_error(ErrorCode::kInvalid, "expected key=value[,key=value...], got \"{}\"", pair);
    }
    labels.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return labels;
}

Result<std::uint16_t> parse_port(const std::string& text) {
  std::uint16_t port = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (ec != std::errc{} || end != text.data() + text.size()) {
    return make_error(ErrorCode::kInvalid, "expected a port from 0 to 65535, got \"{}\"", text);
  }
  return port;
}

void add_serving(CLI::App& app, ServingArgs& args) {
  app.add_option("--data-dir", args.data_dir, "Where the database, certificates and kubeconfig live")
      ->default_str("/var/lib/spillway as root, else ~/.local/share/spillway");
  app.add_option("--bind-address", args.bind_address, "Address to listen on")->capture_default_str();
  add_parsed(app, "--port", args.port, parse_port, "Port to listen on; 0 picks a free one", "PORT", "6443");
  app.add_option("--write-kubeconfig", args.write_kubeconfig,
                 "Write the administrator's kubeconfig here once the server answers")
      ->default_str("DATA_DIR/kubeconfig");
  app.add_option("--token-auth-file", args.token_auth_file,
                 "Static bearer tokens: lines of token,user,uid[,\"groups\"]");
  app.add_flag("--insecure-http", args.insecure_http, "Serve plain HTTP without authentication (loopback tests only)");
}

/// A flag that names one member of the KubeletConfiguration.
template <typename Parse>
void add_setting(CLI::App& app, NodeConfigArgs& config, const std::string& flag, const std::string& key, Parse parse,
                 const std::string& help, const std::string& type, const std::string& shown_default) {
  CLI::Option* option = app.add_option_function<std::string>(
      flag,
      [&config, parse, flag, key](const std::string& text) {
        Result<api::Json> parsed = parse(text);
        if (!parsed) throw CLI::ValidationError(flag, parsed.error().text());
        config.flags[key] = *std::move(parsed);
      },
      help);
  option->type_name(type);
  if (!shown_default.empty()) option->default_str(shown_default);
}

Result<api::Json> integer_setting(const std::string& text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return make_error(ErrorCode::kInvalid, "expected a whole number, got \"{}\"", text);
  }
  return api::Json(std::int64_t{value});
}

Result<api::Json> count_setting(const std::string& text) {
  SPILLWAY_TRY(value, integer_setting(text));
  if (*value.if_int64() <= 0) return make_error(ErrorCode::kInvalid, "must be positive, got {}", text);
  return value;
}

Result<api::Json> duration_setting(const std::string& text) {
  SPILLWAY_TRY(duration, parse_positive_duration(text));
  return api::Json(api::format_duration(duration));
}

/// "signal<value,…" or "signal=value,…" as a mapping.
auto pairs_setting(eviction::PairSyntax syntax) {
  return [syntax](const std::string& text) -> Result<api::Json> {
    eviction::SignalFlag pairs(syntax, {});
    SPILLWAY_TRY_VOID(pairs.add(text));
    api::Json map = api::Json::object();
    for (const auto& [signal, value] : pairs.entries()) map[signal] = value;
    return map;
  };
}

Result<api::Json> resources_setting(const std::string& text) {
  SPILLWAY_TRY(map, pairs_setting(eviction::PairSyntax::kEquals)(text));
  for (const auto& [resource, amount] : *map.if_object()) {
    if (!api::parse_quantity(*amount.if_string())) {
      return make_error(ErrorCode::kInvalid, "{}: expected a quantity, got {}", resource, api::to_text(amount));
    }
  }
  return map;
}

Result<api::Json> list_setting(const std::string& text) {
  api::Json list = api::Json::array();
  for (const std::string& each : CLI::detail::split(text, ',')) list.if_array()->push_back(each);
  return list;
}

void add_node_config(CLI::App& app, NodeConfigArgs& config) {
  app.add_option("--config", config.file, "KubeletConfiguration (YAML); flags win over it")->check(CLI::ExistingFile);
  app.add_option("--config-dir", config.directory,
                 "Directory of *.conf files merged over it, in the order of their names")
      ->check(CLI::ExistingDirectory);
  const auto less_than = pairs_setting(eviction::PairSyntax::kLessThan);
  const auto equals = pairs_setting(eviction::PairSyntax::kEquals);
  add_setting(app, config, "--eviction-hard", "evictionHard", less_than,
              "Hard thresholds, e.g. memory.available<100Mi; naming one drops all defaults", "SIGNAL<VALUE,...", "");
  add_setting(app, config, "--eviction-soft", "evictionSoft", less_than, "Soft thresholds, e.g. memory.available<300Mi",
              "SIGNAL<VALUE,...", "");
  add_setting(app, config, "--eviction-soft-grace-period", "evictionSoftGracePeriod", equals,
              "e.g. memory.available=1m30s", "SIGNAL=DURATION,...", "");
  add_setting(app, config, "--eviction-minimum-reclaim", "evictionMinimumReclaim", equals, "e.g. memory.available=50Mi",
              "SIGNAL=VALUE,...", "");
  add_setting(app, config, "--eviction-pressure-transition-period", "evictionPressureTransitionPeriod",
              duration_setting, "How long a pressure condition lingers", "DURATION", "5m0s");
  add_setting(app, config, "--eviction-max-pod-grace-period", "evictionMaxPodGracePeriod", integer_setting,
              "Ceiling of a pod's grace in soft evictions, in seconds", "INT", "0");
  add_setting(app, config, "--kube-reserved", "kubeReserved", resources_setting,
              "Kept from pods for the node's daemons, e.g. cpu=100m,memory=200Mi", "RESOURCE=QUANTITY,...", "");
  add_setting(app, config, "--system-reserved", "systemReserved", resources_setting,
              "Kept from pods for the operating system", "RESOURCE=QUANTITY,...", "");
  add_setting(app, config, "--enforce-node-allocatable", "enforceNodeAllocatable", list_setting,
              "What the reservations are enforced on", "WHAT,...", "pods");
  add_setting(app, config, "--node-status-update-frequency", "nodeStatusUpdateFrequency", duration_setting,
              "How often the status is computed", "DURATION", "10s");
  add_setting(app, config, "--node-status-report-frequency", "nodeStatusReportFrequency", duration_setting,
              "How often an unchanged status is reported", "DURATION", "5m0s");
  add_setting(app, config, "--node-status-max-images", "nodeStatusMaxImages", integer_setting,
              "Images the status lists; -1: all", "INT", "50");
  add_setting(app, config, "--node-lease-duration-seconds", "nodeLeaseDurationSeconds", count_setting,
              "Renewed at a quarter of it", "INT", "40");
  add_setting(app, config, "--max-pods", "maxPods", count_setting, "Pods this node takes", "INT", "110");
  add_setting(app, config, "--pods-per-core", "podsPerCore", integer_setting, "Pods per core; 0: no such limit", "INT",
              "0");
}

void add_node(CLI::App& app, NodeArgs& args) {
  add_node_config(app, args.config);
  add_parsed(app, "--node-labels", args.labels, parse_labels, "Labels the node registers with", "KEY=VALUE,...", "");
  add_parsed(app, "--node-memory", args.memory, parse_optional_bytes,
             "Make the node a cgroup with this much memory instead of the whole machine", "QUANTITY", "");
  app.add_option("--node-pids", args.pids_max, "Limit of processes in the node's cgroup")->check(CLI::PositiveNumber);
  app.add_option("--state-dir", args.state_dir, "Pod logs and directories")->default_str("/var/lib/spillway/nodes");
}

/// Zero is the default and means off.
void add_optional_brake(CLI::App& app, const std::string& flag, Duration& into, const std::string& help) {
  add_parsed(app, flag, into, parse_positive_duration, "Brake: " + help, "DURATION", "off");
}

void add_brakes(CLI::App& app, BrakeArgs& args) {
  const std::string limits = "; ACTS/DURATION[,zone=ACTS/DURATION][,owner=ACTS/DURATION]";
  app.add_option("--limit-not-ready", args.limit_not_ready, "Brake: nodes marked not ready within a window" + limits);
  app.add_option("--limit-taints", args.limit_taints, "Brake: nodes tainted (or evicted) within a window" + limits);
  app.add_option("--limit-deletions", args.limit_deletions, "Brake: pods deleted within a window" + limits);
  app.add_option("--zone-full-disruption", args.full_disruption,
                 "A fully disrupted zone is evicted at the normal rate, at the secondary rate (slow), or not (hold)")
      ->check(CLI::IsMember({"normal", "slow", "hold"}))
      ->capture_default_str();
  app.add_option("--heartbeat-stall-fraction", args.stall_share,
                 "Brake: if a larger share of the nodes is late at once, wait for --heartbeat-stall-max; 0: off")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  add_duration(app, "--heartbeat-stall-max", args.stall_max, "How long such a stall is not believed");
  add_optional_brake(app, "--watch-age-max", args.watch_age_max,
                     "do nothing while our own watch was silent for longer");
  add_optional_brake(app, "--clock-jump-max", args.clock_jump_max,
                     "do nothing for a grace period after a clock jumped, or this process stood still, for longer");
  add_optional_brake(app, "--storm-cool-down", args.storm_cool_down,
                     "do nothing for this long after a storm has passed");
  app.add_option("--hold-config-map", args.hold_config_map,
                 "Brake: do nothing while this ConfigMap exists (NAMESPACE/NAME); data.why is shown as the reason");
  app.add_flag("--respect-disruption-budgets", args.respect_budgets,
               "Brake: evict within PodDisruptionBudgets instead of deleting");
  app.add_flag("--wait-for-replacement", args.wait_for_replacement,
               "Brake: delete a pod only when its replacement could be placed");
}

void add_leader_election(CLI::App& app, LeaderElectionArgs& args) {
  app.add_flag("--leader-elect,!--no-leader-elect", args.enabled, "Act only while holding the lease")
      ->capture_default_str();
  add_duration(app, "--leader-elect-lease-duration", args.lease_duration,
               "How long others wait for a lease that is not renewed");
  add_duration(app, "--leader-elect-renew-deadline", args.renew_deadline,
               "How long a leader acts after its last renewal");
  add_duration(app, "--leader-elect-retry-period", args.retry_period, "Between two attempts");
  app.add_option("--leader-elect-resource-name", args.resource_name, "Name of the lease")->capture_default_str();
  app.add_option("--leader-elect-resource-namespace", args.resource_namespace, "Its namespace")->capture_default_str();
}

void add_controller(CLI::App& app, ControllerArgs& args) {
  add_duration(app, "--node-monitor-period", args.node_monitor_period, "Period of the node health pass");
  add_duration(app, "--node-monitor-grace-period", args.node_monitor_grace_period,
               "Silence after which a node is Unknown");
  add_duration(app, "--node-startup-grace-period", args.node_startup_grace_period, "The same for a node never heard");
  app.add_option("--node-eviction-rate", args.node_eviction_rate, "Nodes per second tainted in a healthy zone")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--secondary-node-eviction-rate", args.secondary_node_eviction_rate,
                 "The same in a large zone that is partially down")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--large-cluster-size-threshold", args.large_cluster_size_threshold, "Zones above it are large")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--unhealthy-zone-threshold", args.unhealthy_zone_threshold,
                 "Share of unhealthy nodes that makes a zone partially down")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--terminated-pod-gc-threshold", args.terminated_pod_gc_threshold, "Finished pods that are kept")
      ->capture_default_str();
  add_parsed(app, "--pod-eviction-timeout", args.pod_eviction_timeout, parse_optional_duration,
             "Silence after which the pods of a node are deleted; --eviction-mode=timeout only", "DURATION", "5m0s");
  app.add_option("--eviction-mode", args.eviction_mode,
                 "taint: NoExecute taints and tolerations; timeout: --pod-eviction-timeout, as before 1.18")
      ->check(CLI::IsMember({"taint", "timeout"}))
      ->capture_default_str();
  app.add_option("--compat", args.compat, "Behave as this Kubernetes line, defects included")
      ->check(CLI::IsMember({"v1.7", "v1.19", "v1.29", "v1.34"}));
  add_brakes(app, args.brakes);
}

void add_kubeconfig(CLI::App& app, std::string& path) {
  app.add_option("--kubeconfig", path, "How to reach the API server")->required()->check(CLI::ExistingFile);
}

void add_log(CLI::App& app, LogArgs& args) {
  app.add_option("--log-level", args.level, "debug, info, warning or error")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, telemetry::Level>{{"debug", telemetry::Level::kDebug},
                                                                          {"info", telemetry::Level::kInfo},
                                                                          {"warning", telemetry::Level::kWarning},
                                                                          {"error", telemetry::Level::kError}}))
      ->default_str("info");
  app.add_option("--log-format", args.format, "logfmt or json")
      ->transform(CLI::CheckedTransformer(std::map<std::string, telemetry::LogFormat>{
          {"logfmt", telemetry::LogFormat::kLogfmt}, {"json", telemetry::LogFormat::kJson}}))
      ->default_str("logfmt");
}

/// "pod/NAME", "po/NAMESPACE/NAME", "node/NAME".
Outcome parse_explained(const std::string& text, ExplainCommand& command) {
  const std::size_t slash = text.find('/');
  const std::string kind = text.substr(0, slash);
  std::string name = slash == std::string::npos ? "" : text.substr(slash + 1);
  const bool is_pod = kind == "pod" || kind == "pods" || kind == "po";
  const bool is_node = kind == "node" || kind == "nodes" || kind == "no";
  if ((!is_pod && !is_node) || name.empty()) {
    return make_error(ErrorCode::kInvalid, "\"{}\" cannot be explained; expected pod/NAME or node/NAME", text);
  }
  if (const std::size_t second = name.find('/'); is_pod && second != std::string::npos) {
    command.name_space = name.substr(0, second);
    name = name.substr(second + 1);
  }
  if (name.empty() || name.find('/') != std::string::npos) {
    return make_error(ErrorCode::kInvalid, "\"{}\" names nothing; expected pod/NAME or node/NAME", text);
  }
  command.about = is_pod ? ExplainCommand::About::kPod : ExplainCommand::About::kNode;
  command.name = std::move(name);
  return {};
}

void collect_flags(const CLI::App& app, std::vector<std::string>& flags) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
}

/// " (did you mean --data-dir?)", or empty when nothing is close.
std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  std::size_t best = word.size() / 3 + 2;
  std::string found;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found.empty() ? "" : fmt::format(" (did you mean {}?)", found);
}

class Parser {
 public:
  std::variant<CommandLine, Farewell> parse(int argc, const char* const* argv) {
    define();
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return Farewell{chosen().help(), kExitOk};
    } catch (const CLI::CallForVersion& version) {
      return Farewell{std::string(version.what()) + "\n", kExitOk};
    } catch (const CLI::ParseError& error) {
      return Farewell{mistake(error, argc, argv), kExitUsage};
    }
    return CommandLine{log_, chosen_()};
  }

 private:
  CLI::App& add(const std::string& name, const std::string& help) {
    CLI::App* app = app_.add_subcommand(name, help);
    app->fallthrough();
    return *app;
  }

  template <typename Args>
  void choose(CLI::App& app, const std::shared_ptr<Args>& args) {
    app.callback([this, args] { chosen_ = [args]() -> Command { return *args; }; });
  }

  void define() {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "spillway " SPILLWAY_VERSION);
    add_log(app_, log_);

    const auto up = std::make_shared<UpCommand>();
    CLI::App& up_app = add("up", "Run API server, controllers, scheduler and nodes in one process");
    add_serving(up_app, up->serving);
    add_node(up_app, up->node);
    add_controller(up_app, up->controller);
    up_app.add_option("--nodes", up->nodes, "Nodes to run on this machine")
        ->check(CLI::Range(0, 64))
        ->capture_default_str();
    up_app.add_option("--node-name", up->node_name, "Name of the node; of several: prefix, followed by -1, -2, ...");
    choose(up_app, up);

    const auto apiserver = std::make_shared<ApiserverCommand>();
    CLI::App& apiserver_app = add("apiserver", "Run the API server alone");
    add_serving(apiserver_app, apiserver->serving);
    choose(apiserver_app, apiserver);

    const auto agent = std::make_shared<AgentCommand>();
    CLI::App& agent_app = add("agent", "Run one node");
    agent_app.add_flag("--print-config", agent->print_config, "Print the configuration in effect as YAML and exit");
    agent_app.add_option("--kubeconfig", agent->kubeconfig, "How to reach the API server")->check(CLI::ExistingFile);
    agent_app.add_option("--node-name", agent->node_name, "Name of the node")->default_str("the host name");
    add_parsed(agent_app, "--node-ip", agent->node_ip, parse_address,
               "Address the node reports, and serves logs and metrics on", "ADDRESS", "the machine's");
    agent_app.add_option("--port", agent->port, "Its port; 0: any free one")->capture_default_str();
    add_node(agent_app, agent->node);
    choose(agent_app, agent);

    const auto controller = std::make_shared<ControllerCommand>();
    CLI::App& controller_app = add("controller", "Run the controllers");
    add_kubeconfig(controller_app, controller->kubeconfig);
    add_controller(controller_app, controller->controller);
    add_leader_election(controller_app, controller->leader_election);
    controller_app
        .add_option("--controllers", controller->controllers, "Which to run: names, -name to leave one out, * for all")
        ->capture_default_str();
    controller_app.add_flag("--shadow", controller->shadow,
                            "Write nothing; report where the cluster differs from what would have been done");
    controller_app.add_flag(
        "--beside-stock-controllers", controller->beside_stock,
        "Run although kube-controller-manager holds its lease: its controllers of these names are off");
    choose(controller_app, controller);

    const auto scheduler = std::make_shared<SchedulerCommand>();
    CLI::App& scheduler_app = add("scheduler", "Run the scheduler");
    add_kubeconfig(scheduler_app, scheduler->kubeconfig);
    choose(scheduler_app, scheduler);

    const auto demo = std::make_shared<DemoCommand>();
    CLI::App& demo_app = add("demo", "Show an eviction and a node failure on this machine, in a minute");
    demo_app.add_flag("--keep", demo->keep, "Leave the temporary directory with database and logs");
    choose(demo_app, demo);

    const auto stress = std::make_shared<StressCommand>();
    CLI::App& stress_app = add("stress", "Allocate and touch memory at a rate, then hold it");
    add_parsed(stress_app, "--memory", stress->memory, parse_bytes, "How much", "QUANTITY", "")->required();
    add_parsed(stress_app, "--rate", stress->rate_per_second, parse_rate, "How fast, e.g. 60Mi/s", "QUANTITY/s",
               "as fast as possible");
    add_duration(stress_app, "--hold", stress->hold, "How long it is kept");
    choose(stress_app, stress);

    const auto lint = std::make_shared<LintCommand>();
    CLI::App& lint_app = add("lint", "Say what a KubeletConfiguration does, and what in it is wrong or dangerous");
    lint_app.add_option("FILE", lint->files, "KubeletConfiguration files, each on its own")->required();
    add_parsed(lint_app, "--memory", lint->memory, parse_optional_bytes, "Memory of the node", "QUANTITY",
               "this machine's");
    add_parsed(lint_app, "--disk", lint->disk, parse_optional_bytes, "Size of the node's file system", "QUANTITY",
               "this machine's");
    lint_app.add_option("-o,--output", lint->output, "text or json")
        ->transform(CLI::CheckedTransformer(
            std::map<std::string, OutputFormat>{{"text", OutputFormat::kText}, {"json", OutputFormat::kJson}}))
        ->default_str("text");
    lint_app.footer("Exit codes: 0 nothing to say, 1 dangerous, 2 invalid, 3 a file cannot be read, 4 warnings only.");
    choose(lint_app, lint);
    define_explain();

    const auto simulate = std::make_shared<SimulateCommand>();
    CLI::App& simulate_app = add("simulate", "Let one zone of a simulated cluster die and recover");
    simulate_app.add_option("--seed", simulate->seed, "Everything random comes from it")->capture_default_str();
    simulate_app.add_option("--nodes", simulate->nodes, "Nodes")->check(CLI::Range(1, 200000))->capture_default_str();
    simulate_app.add_option("--zones", simulate->zones, "Zones")->check(CLI::Range(1, 1000))->capture_default_str();
    add_duration(simulate_app, "--duration", simulate->duration, "Virtual time");
    simulate_app.add_option("--incident", simulate->incident,
                            "Run this named incident without and with brakes instead; all: every one");
    choose(simulate_app, simulate);

    const auto swarm = std::make_shared<SwarmCommand>();
    CLI::App& swarm_app = add("swarm", "Run random seeds with faults in the simulator against invariants");
    swarm_app.add_option("--seeds", swarm->seeds, "How many")->check(CLI::PositiveNumber)->capture_default_str();
    swarm_app.add_option("--first-seed", swarm->first_seed, "The first of them")->capture_default_str();
    swarm_app.add_option("--seed", swarm->only, "Replay this one seed, with its trace");
    choose(swarm_app, swarm);
  }

  void define_explain() {
    const auto explain = std::make_shared<ExplainCommand>();
    explain->name_space = "default";
    CLI::App& app = add("explain", "Say why a pod was evicted, why nothing is, and who would be next");
    app.footer(
        "Exit codes: 0 answered, 1 could not be asked, 2 wrong command line, 3 nothing is known about it.\n"
        "When the agent of a node is gone, its journal still answers: --journal STATE_DIR/NODE/journal.jsonl");
    bool& is_last = explain->last;
    CLI::Option* last = app.add_flag("--last", is_last, "The last decision of all nodes, or of the journal");
    app.add_option("-n,--namespace", explain->name_space, "Namespace of the pod")->capture_default_str();
    CLI::Option* what = app.add_option_function<std::string>(
        "what",
        [explain](const std::string& text) {
          if (const Outcome parsed = parse_explained(text, *explain); !parsed) {
            throw CLI::ValidationError("explain", parsed.error().text());
          }
        },
        "pod/NAME or node/NAME");
    what->type_name("pod/NAME|node/NAME")->excludes(last);
    app.add_option("--kubeconfig", explain->kubeconfig, "How to reach the API server")
        ->check(CLI::ExistingFile)
        ->default_str("the one `spillway up` has written");
    app.add_option("--journal", explain->journal, "Read this journal of an agent instead of asking the cluster");
    app.add_option("--node", explain->node, "Ask only this node");
    app.add_option("-o,--output", explain->output, "text or json")
        ->transform(CLI::CheckedTransformer(
            std::map<std::string, OutputFormat>{{"text", OutputFormat::kText}, {"json", OutputFormat::kJson}}))
        ->default_str("text");
    app.add_option("--color", explain->colour, "auto, always or never")
        ->transform(CLI::CheckedTransformer(std::map<std::string, Colour>{
            {"auto", Colour::kAuto}, {"always", Colour::kAlways}, {"never", Colour::kNever}}))
        ->default_str("auto");
    app.callback([this, explain, what, last] {
      if (what->count() == 0 && last->count() == 0) {
        throw CLI::ValidationError("explain", "say what to explain: pod/NAME, node/NAME or --last");
      }
      chosen_ = [explain]() -> Command { return *explain; };
    });
  }

  const CLI::App& chosen() const {
    const std::vector<CLI::App*> apps = app_.get_subcommands();
    return apps.empty() ? static_cast<const CLI::App&>(app_) : *apps.front();
  }

  std::string mistake(const CLI::ParseError& error, int argc, const char* const* argv) const {
    std::string text = error.what();
    std::vector<std::string> known;
    if (app_.get_subcommands().empty()) {
      for (const CLI::App* app : app_.get_subcommands({})) known.push_back(app->get_name());
      if (argc > 1 && argv[1][0] != '-') text = fmt::format("unknown command \"{}\"", argv[1]);
    }
    collect_flags(app_, known);
    collect_flags(chosen(), known);
    for (int i = 1; i < argc; ++i) {
      const std::string word = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
      if (text.find(word) == std::string::npos || std::find(known.begin(), known.end(), word) != known.end()) continue;
      if (word.starts_with("--")) text = fmt::format("unknown flag {}", word);
      text += suggestion(word, known);
      break;
    }
    const std::string& command = chosen().get_name();
    return fmt::format("spillway: {}; see `spillway {}--help`\n", text,
                       app_.get_subcommands().empty() ? "" : command + " ");
  }

  CLI::App app_{"Keeps Kubernetes nodes alive under resource pressure and their workloads running when nodes fail.",
                "spillway"};
  LogArgs log_;
  std::function<Command()> chosen_;
};

}  // namespace

std::variant<CommandLine, Farewell> parse_command_line(int argc, const char* const* argv) {
  return Parser().parse(argc, argv);
}

}  // namespace spillway::cli
