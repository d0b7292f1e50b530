#include "sim/scenario/parser.h"

#include "api/text/quantity.h"
#include "base/edit_distance.h"
#include "sim/cluster.h"
#include "sim/scenario/cluster_import.h"
#include "sim/scenario/config_parser.h"
#include "sim/scenario/fault_parser.h"
#include "sim/scenario/known_names.h"
#include "sim/scenario/reading.h"
#include "sim/scenario/timeline_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace spillway::sim {
namespace {

using yaml::Place;
using Workload = GeneratedCluster::Workload;
using api::Json;

constexpr std::int64_t kServersMax = 9;  // and members of etcd
constexpr Duration kAfterTimeline = minutes(10);

/// 2 or "25%".
Result<Json> read_bound(const Place& place, std::string_view name) {
  if (!place.has(name)) return Json();
  const Place bound = place.member(name);
  const auto number = bound.value().if_int64();
  if (number && *number >= 0) return Json(*number);
  const std::string* const text = bound.value().if_string();
  const std::size_t digits = text == nullptr ? std::string::npos : text->find_first_not_of("0123456789");
  if (digits == std::string::npos || digits == 0 || digits > 3 || text->substr(digits) != "%") {
    return bound.wrong("expected a number of pods or a percentage, e.g. 2 or 25%");
  }
  return Json(*text);
}

Outcome read_strategy(const Place& place, Workload& out) {
  for (const std::string_view name : {"maxUnavailable", "maxSurge"}) {
    if (place.has(name) && out.kind != "Deployment") return place.member(name).wrong("only a deployment has this");
  }
  SPILLWAY_TRY(max_unavailable, read_bound(place, "maxUnavailable"));
  SPILLWAY_TRY(max_surge, read_bound(place, "maxSurge"));
  out.max_unavailable = std::move(max_unavailable);
  out.max_surge = std::move(max_surge);
  return {};
}

Result<Workload> read_workload(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members({"replicaSet", "daemonSet", "deployment", "namespace", "replicas", "memory",
                                         "growth", "memoryRequest", "memoryLimit", "cpuRequest", "priorityClass",
                                         "node", "minAvailable", "tolerationSeconds", "maxUnavailable", "maxSurge"}));
  Workload out;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kKinds = {
      {{"replicaSet", "ReplicaSet"}, {"daemonSet", "DaemonSet"}, {"deployment", "Deployment"}}};
  if (std::ranges::count_if(kKinds, [&place](const auto& each) { return place.has(each.first); }) != 1) {
    return place.wrong("expected a name as one of replicaSet, daemonSet or deployment");
  }
  for (const auto& [member, kind] : kKinds) {
    if (!place.has(member)) continue;
    SPILLWAY_TRY(name, place.optional_text(member));
    out.kind = kind;
    out.name = name;
  }
  SPILLWAY_TRY_VOID(read_strategy(place, out));
  SPILLWAY_TRY(ns, place.optional_text("namespace"));
  if (!ns.empty()) out.ns = ns;
  SPILLWAY_TRY(replicas, place.number("replicas", 0, 1'000'000));
  out.replicas = replicas.value_or(1);
  SPILLWAY_TRY(memory, read_bytes(place, "memory"));
  if (memory) out.memory = *memory;
  SPILLWAY_TRY(growth, read_rate(place, "growth"));
  if (growth) out.growth_per_second = *growth;
  SPILLWAY_TRY(memory_request, read_quantity(place, "memoryRequest"));
  SPILLWAY_TRY(memory_limit, read_quantity(place, "memoryLimit"));
  SPILLWAY_TRY(cpu_request, read_quantity(place, "cpuRequest"));
  out.memory_request = memory_request;
  out.memory_limit = memory_limit;
  out.cpu_request = cpu_request;
  SPILLWAY_TRY(priority, place.optional_text("priorityClass"));
  out.priority_class = priority;
  SPILLWAY_TRY(node, place.optional_text("node"));
  if (!node.empty() && out.kind == "DaemonSet") return place.member("node").wrong("a daemonSet runs on every node");
  out.node = node;
  SPILLWAY_TRY(available, place.number("minAvailable", 0, 1'000'000));
  out.budget_available = available;
  SPILLWAY_TRY(stay, place.number("tolerationSeconds", 0, 1'000'000));
  out.toleration_seconds = stay;
  return out;
}

/// A pod that names its node is not scheduled; if that node does not exist, the pod would wait for ever.
Outcome check_pinned(const Place& place, const GeneratedCluster& cluster) {
  std::vector<std::string> nodes;
  for (const MachineSpec& each : inventory_of(cluster).machines) nodes.push_back(each.name);
  return place.for_each("workloads", [&](const Place& each) -> Outcome {
    SPILLWAY_TRY(node, each.optional_text("node"));
    if (node.empty() || std::ranges::find(nodes, node) != nodes.end()) return {};
    return each.member("node").wrong(fmt::format("there is no node \"{}\"{}; this cluster has {}", node,
                                                 nearest_word(node, nodes).suggestion(), list_names(nodes)));
  });
}

Result<GeneratedCluster> read_generated(const Place& place) {
  SPILLWAY_TRY_VOID(place.check_members(
      {"nodes", "zones", "racks", "podsPerNode", "memory", "cpu", "disk", "swap", "workloads", "servers", "etcd"}));
  GeneratedCluster out;
  SPILLWAY_TRY(nodes, place.number("nodes", 1, kGeneratedNodesMax));
  out.nodes = nodes.value_or(30);
  SPILLWAY_TRY(zones, place.number("zones", 1, out.nodes));
  out.zones = zones.value_or(std::min<std::int64_t>(3, out.nodes));
  SPILLWAY_TRY(racks, place.number("racks", 0, out.nodes));
  out.racks = racks.value_or(0);
  SPILLWAY_TRY(pods, place.number("podsPerNode", 0, 100));
  out.pods_per_node = pods.value_or(place.has("workloads") ? 0 : 2);
  SPILLWAY_TRY(memory, read_bytes(place, "memory"));
  if (memory) out.memory = *memory;
  SPILLWAY_TRY(disk, read_bytes(place, "disk"));
  if (disk) out.disk = *disk;
  SPILLWAY_TRY(swap, read_bytes(place, "swap"));
  if (swap) out.swap = *swap;
  SPILLWAY_TRY(cpu, place.number("cpu", 1, 1024));
  if (cpu) out.cpu_milli = *cpu * 1000;
  SPILLWAY_TRY_VOID(place.for_each("workloads", [&out](const Place& each) -> Outcome {
    SPILLWAY_TRY(workload, read_workload(each));
    out.workloads.push_back(std::move(workload));
    return {};
  }));
  SPILLWAY_TRY_VOID(check_pinned(place, out));
  return out;
}

Result<Inventory> read_imported(const Place& place, const ReadText& read) {
  SPILLWAY_TRY_VOID(place.check_members({"import", "usage", "profile", "servers", "etcd"}));
  SPILLWAY_TRY(file, place.optional_text("import"));
  auto text = read(file);
  if (!text) return place.member("import").wrong(text.error().text());
  auto document = api::parse_json(*text);
  if (!document) return place.member("import").wrong(fmt::format("{} is not JSON: {}", file, document.error().text()));
  ImportOptions options;
  SPILLWAY_TRY(usage, place.optional_text("usage"));
  if (usage == "limits") options.load = ImportOptions::Load::kLimits;
  if (!usage.empty() && usage != "limits" && usage != "requests") {
    return place.member("usage").wrong(fmt::format("expected requests or limits, got \"{}\"", usage));
  }
  SPILLWAY_TRY_VOID(place.for_each("profile", [&options](const Place& each) -> Outcome {
    SPILLWAY_TRY_VOID(each.check_members({"pods", "memory"}));
    SPILLWAY_TRY(pods, each.optional_text("pods"));
    SPILLWAY_TRY(memory, read_bytes(each, "memory"));
    if (pods.empty() || !memory) return each.wrong("expected {pods: default/web-*, memory: 200Mi}");
    options.profile.emplace_back(pods, *memory);
    return {};
  }));
  auto inventory = import_cluster(*document, options);
  if (!inventory) return place.member("import").wrong(fmt::format("{}: {}", file, inventory.error().text()));
  return inventory;
}

Outcome read_expectations(const Place& place, Scenario& scenario) {
  return place.for_each("expect", [&scenario](const Place& each) -> Outcome {
    const bool forbids = each.value().is_object();
    if (forbids) SPILLWAY_TRY_VOID(each.check_members({"no"}));
    const Place line = forbids ? each.member("no") : each;
    SPILLWAY_TRY(text, line.text());
    auto expectation = forbids ? parse_prohibition(text) : parse_expectation(text);
    if (!expectation) return line.wrong(expectation.error().text());
    scenario.expectations.push_back(*std::move(expectation));
    return {};
  });
}

Outcome read_cluster(const Place& root, const ReadText& read, const ClusterOverride& instead, Scenario& out) {
  const Place cluster = root.member("cluster");
  SPILLWAY_TRY(servers, cluster.number("servers", 1, kServersMax));
  if (servers) out.control_plane.servers = static_cast<std::size_t>(*servers);
  SPILLWAY_TRY(etcd, cluster.number("etcd", 0, kServersMax));
  if (etcd) out.control_plane.etcd = static_cast<std::size_t>(*etcd);
  if (instead.inventory) {
    out.cluster = *instead.inventory;
  } else if (cluster.has("import")) {
    SPILLWAY_TRY(imported, read_imported(cluster, read));
    out.cluster = std::move(imported);
  } else {
    GeneratedCluster generated;
    if (root.has("cluster")) {
      SPILLWAY_TRY(written, read_generated(cluster));
      generated = std::move(written);
    }
    generated.nodes = instead.nodes.value_or(generated.nodes);
    generated.zones = std::min(instead.zones.value_or(generated.zones), generated.nodes);
    out.cluster = std::move(generated);
  }
  return {};
}

Result<Scenario> read_scenario(const Place& root, const DocumentPart& part, const ReadText& read,
                               const ClusterOverride& instead) {
  SPILLWAY_TRY_VOID(root.check_members({"name", "story", "seed", "cluster", "config", "faults", "surplus", "settle",
                                        "duration", "rest", "timeline", "expect"}));
  Scenario out;
  out.file = part.file;
  SPILLWAY_TRY(name, root.optional_text("name"));
  if (name.empty()) return root.wrong("name is missing; expected a short name, e.g. zone-outage");
  out.name = name;
  SPILLWAY_TRY(story, root.optional_text("story"));
  out.story = story;
  SPILLWAY_TRY(seed, root.number("seed", 0, std::numeric_limits<std::int64_t>::max()));
  if (seed) out.seed = static_cast<std::uint64_t>(*seed);
  SPILLWAY_TRY_VOID(read_cluster(root, read, instead, out));
  if (root.has("config")) {
    SPILLWAY_TRY(config, parse_config(root.member("config"), {part.file, part.document, "config"}, read));
    out.config = std::move(config);
  }
  if (root.has("faults")) {
    SPILLWAY_TRY(faults, parse_faults(root.member("faults")));
    out.faults = faults;
  }
  if (root.has("surplus")) SPILLWAY_TRY_VOID(root.expect("surplus", "never"));
  out.no_surplus = root.has("surplus");
  const auto machines = machines_of(out);
  SPILLWAY_TRY(timeline, parse_timeline(root, machines));
  out.timeline = std::move(timeline);
  if (!instead.foreign_pods) SPILLWAY_TRY_VOID(check_names(root, out));
  SPILLWAY_TRY_VOID(check_servers(root, out.control_plane, out.timeline));
  if (const Outcome can_start = check_agents(out.config.agents.value_or(plain_agents()), machines); !can_start)
    return root.member(root.has("config") ? "config" : "cluster").wrong(can_start.error().text());
  if (const Outcome can_continue = check_agents(out); !can_continue)
    return root.member("timeline").wrong(can_continue.error().text());
  SPILLWAY_TRY(delay, read_duration(root, "settle"));
  out.timeline_delay = delay.value_or(minutes(2));
  SPILLWAY_TRY(duration, read_duration(root, "duration"));
  const Duration end = end_of(out.timeline, machines.size());
  if (duration && *duration < end) {
    return root.member("duration")
        .wrong(fmt::format("the timeline ends later: expected at least {} s",
                           std::chrono::duration_cast<seconds>(end).count()));
  }
  out.duration = duration.value_or(end + kAfterTimeline);
  SPILLWAY_TRY(rest, read_duration(root, "rest"));
  out.rest = rest;
  SPILLWAY_TRY_VOID(read_expectations(root, out));
  return out;
}

}  // namespace

Outcome check_agents(const Scenario& scenario) {
  const auto machines = machines_of(scenario);
  const agent::AgentOptions options = scenario.config.agents.value_or(plain_agents());
  SPILLWAY_TRY_VOID(check_agents(options, machines));
  for (const TimelineEvent& event : scenario.timeline) {
    const auto* const change = std::get_if<ChangeThresholds>(&event.action);
    if (change == nullptr) continue;
    std::vector<MachineSpec> changed;
    for (const std::size_t node : chosen_nodes(change->nodes, machines)) changed.push_back(machines[node]);
    SPILLWAY_TRY_VOID(check_agents(with_evictions(options, change->eviction), changed));
  }
  return {};
}

Result<Scenario> parse_scenario(const std::string& file, const std::string& text, const ReadText& read,
                                const ClusterOverride& instead) {
  SPILLWAY_TRY(document, yaml::parse(file, text));
  return read_scenario(Place(file, document, Place::Precision::kColumn), {file, document, ""}, read, instead);
}

Result<ScenarioConfig> parse_scenario_config(const std::string& file, const std::string& text, const ReadText& read,
                                             ScenarioConfig base) {
  SPILLWAY_TRY(document, yaml::parse(file, text));
  return parse_config(Place(file, document, Place::Precision::kColumn), {file, document, ""}, read, std::move(base));
}

}  // namespace spillway::sim
