#include "api/text/duration.h"
#include "cli/flags/commands.h"
#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

namespace spillway::cli {
namespace {

/// "NAME", "node/NAME", "nodes".
Result<std::string> parse_top(const std::string& text) {
  if (text == "nodes" || text == "node" || text == "no") return std::string();
  const std::size_t slash = text.find('/');
  const std::string kind = slash == std::string::npos ? "node" : text.substr(0, slash);
  const std::string name = slash == std::string::npos ? text : text.substr(slash + 1);
  if ((kind != "node" && kind != "nodes" && kind != "no") || name.empty() || name.contains('/')) {
    return make_error(ErrorCode::kInvalid, "\"{}\" is no node; expected nodes, NAME or node/NAME", text);
  }
  return name;
}

Result<TopCommand::Sort> parse_sort(const std::string& text) {
  if (text == "near") return TopCommand::Sort::kNear;
  if (text == "name") return TopCommand::Sort::kName;
  if (text == "memory") return TopCommand::Sort::kMemory;
  return invalid({}, "expected near, name or memory, got \"{}\"", text);
}

Result<Duration> parse_interval(const std::string& text) {
  SPILLWAY_TRY(interval, api::parse_duration(text));
  if (interval < milliseconds(100)) return make_error(ErrorCode::kInvalid, "must be at least 100ms, got \"{}\"", text);
  return interval;
}

void define_top(Commands& commands) {
  const auto top = std::make_shared<TopCommand>();
  CLI::App& app = commands.add(
      "top", "Show how near nodes are to eviction, when they reach it, and which pods would be evicted next");
  app.add_option_function<std::vector<std::string>>(
         "node",
         [top](const std::vector<std::string>& words) {
           const auto name = parse_top(words.size() == 2 ? words[0] + "/" + words[1] : words.front());
           if (!name) throw CLI::ValidationError("node", name.error().text());
           top->node = *name;
         },
         "One node with all its thresholds, and its pods in the order of eviction")
      ->type_name("nodes|node/NAME")
      ->expected(0, 2)
      ->default_str("all nodes, those in trouble first");
  app.add_option("-l,--selector", top->selector, "Show only nodes with these labels (a selector as in kubectl)")
      ->type_name("LABELS");
  add_parsed(
      app, "--sort-by", top->sort, parse_sort,
      "Order of the nodes: near (in trouble, then nearest to a threshold), name, or memory (least available first)",
      "near|name|memory", "near");
  CLI::Option* watch = app.add_flag("-w,--watch", top->watch, "Refresh until Ctrl-C");
  add_parsed(app, "--interval", top->interval, parse_interval, "Interval between two refreshes", "DURATION", "2s")
      ->needs(watch);
  add_client_api(app, top->api);
  add_table_output(app, top->output);
  add_colour(app, top->colour);
  app.footer(
      "Works with any kubelet. Without an agent of Spillway, thresholds come from /configz, and no forecast is shown.\n"
      "Needs the right to get nodes/proxy. With -o json, each refresh is one line.\n"
      "Exit codes: 0 shown, or ended by Ctrl-C, 1 the cluster or the node did not answer,\n"
      "2 wrong command line, 3 no such node.");
  commands.choose(app, top);
}

/// "NAME", "NAMESPACE/NAME".
Outcome parse_watched_pod(const std::string& text, WatchCommand& watch) {
  const std::size_t slash = text.find('/');
  watch.pod = slash == std::string::npos ? text : text.substr(slash + 1);
  if (slash != std::string::npos) watch.name_space = text.substr(0, slash);
  if (watch.pod.empty() || watch.pod.contains('/') || slash == 0) {
    return make_error(ErrorCode::kInvalid, "\"{}\" is no pod; expected NAME or NAMESPACE/NAME", text);
  }
  return {};
}

Result<Duration> parse_since(const std::string& text) {
  SPILLWAY_TRY(since, api::parse_duration(text));
  if (since < Duration::zero()) return make_error(ErrorCode::kInvalid, "must not be negative, got \"{}\"", text);
  return since;
}

void define_watch(Commands& commands) {
  const auto watch = std::make_shared<WatchCommand>();
  CLI::App& app = commands.add("watch", "Show decisions about pods and nodes as they happen, a line each");
  app.add_option("--node", watch->node, "Show only decisions of this node")->type_name("NAME");
  app.add_option("-n,--namespace", watch->name_space,
                 "Show only decisions about pods of this namespace, and read only its events")
      ->type_name("NAME");
  add_taken(
      app, "--pod", [watch](const std::string& text) { return parse_watched_pod(text, *watch); },
      "Show only decisions about pods of this name", "NAME|NAMESPACE/NAME", "");
  app.add_option("--reason", watch->reasons, "Show only these reasons (of events or decisions)")
      ->type_name("REASON[,REASON]")
      ->delimiter(',');
  add_parsed(app, "--since", watch->since, parse_since, "Begin with the decisions of this long ago", "DURATION", "0s");
  add_controller_target(app, watch->target);
  add_output(app, watch->output);
  add_colour(app, watch->colour);
  app.footer(
      "Works with any cluster, by its events: evictions, preemptions, refusals, crash loops, pressure, taints, "
      "deletions.\n"
      "Where agents and controllers of Spillway answer, it adds their reasons, decisions in the shadow, and states "
      "and\n"
      "holds of zones. With --since, the past comes first, in order of time.\n"
      "It needs the right to list and watch events; nodes, nodes/proxy and the controllers' pages are left out where "
      "they\n"
      "are refused. A lost connection is made again. With -o json, each line is one object.\n"
      "Exit codes: 0 ended by Ctrl-C, 1 events could not be read or lines not written, 2 wrong command line.");
  commands.choose(app, watch);
}

void define_zones(Commands& commands) {
  const auto zones = std::make_shared<ZonesCommand>();
  CLI::App& app = commands.add("zones", "Show the state of the zones: nodes, rate, queue, next action, active brake");
  add_controller_target(app, zones->target);
  add_table_output(app, zones->output);
  add_colour(app, zones->colour);
  app.footer("Exit codes: 0 answered, 1 no controller answered, 2 wrong command line.");
  commands.choose(app, zones);
}

void define_hold(Commands& commands, HoldCommand::Act act) {
  const auto hold = std::make_shared<HoldCommand>();
  hold->act = act;
  const bool holds = act == HoldCommand::Act::kHold;
  CLI::App& app =
      holds
          ? commands.add("hold", "Stop the node lifecycle controllers: no node is marked or tainted, no pod is deleted")
          : commands.add("resume", "End a hold of `spillway hold`");
  add_client_api(app, hold->api);
  add_parsed(
      app, "--zone", hold->zone, [](const std::string& text) -> Result<std::optional<std::string>> { return text; },
      "Only this zone: its name in `spillway zones`, or the value of its label; - for nodes without zone labels",
      "ZONE", "");
  if (holds) app.add_option("--why", hold->why, "Reason that is shown with the hold");
  app.add_option("--hold-config-map", hold->config_map, "ConfigMap that the controllers watch")
      ->type_name("NAMESPACE/NAME")
      ->capture_default_str();
  commands.choose(app, hold);
}

void define_dashboard(Commands& commands) {
  const auto dashboard = std::make_shared<DashboardCommand>();
  CLI::App& app = commands.add("dashboard", "Serve a page that shows the cluster live, with your own credentials");
  add_client_api(app, dashboard->api);
  add_parsed(app, "--bind-address", dashboard->bind_address, parse_address,
             "Address to listen on (plain HTTP). Any client that reaches it and knows the URL acts with your rights",
             "ADDRESS", "127.0.0.1");
  add_parsed(app, "--port", dashboard->port, parse_port, "Port to listen on; 0: any free one", "PORT", "0");
  add_parsed(app, "--what-if", dashboard->what_if, parse_switch,
             "Allow what-if simulations on the page. One runs at a time, for two minutes at most, with 2Gi", "on|off",
             "on");
  app.footer(
      "Prints the URL to open, which holds a secret that is new with every start, and serves until Ctrl-C. Works with\n"
      "any cluster; where Spillway's agents and controllers answer, the page shows more. It reads nodes, pods, events\n"
      "and leases; with rights to the ConfigMap kube-system/spillway-hold it offers to hold and resume zones.\n"
      "Exit codes: 0 ended, 1 could not serve, 2 wrong command line or kubeconfig.");
  commands.choose(app, dashboard);
}

}  // namespace

void add_controller_target(CLI::App& app, ControllerTargetArgs& args) {
  add_client_api(app, args.api);
  app.add_option("--controller", args.controller, "URL of the controller that leads")
      ->type_name("URL")
      ->default_str("the API server first, then the lease");
  app.add_option("--lease", args.lease, "Lease of the controllers")->type_name("NAMESPACE/NAME")->capture_default_str();
}

void define_cluster_commands(Commands& commands) {
  define_top(commands);
  define_watch(commands);
  define_zones(commands);
  define_hold(commands, HoldCommand::Act::kHold);
  define_hold(commands, HoldCommand::Act::kResume);
  define_dashboard(commands);
}

}  // namespace spillway::cli
