#include "sim/scenario/document.h"

#include "api/object/taint.h"
#include "sim/scenario/expectation.h"
#include "sim/workload.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::sim {
namespace {

using api::Json;
using Workload = GeneratedCluster::Workload;

Json pod_spec_of(const Workload& workload) {
  Json command = Json::array({"stress", "--memory", fmt::format("{}", workload.memory.count())});
  if (workload.growth_per_second > Bytes{0}) {
    command.if_array()->emplace_back("--rate");
    command.if_array()->emplace_back(fmt::format("{}", workload.growth_per_second.count()));
  }
  Json container = Json::object({{"name", "main"}, {"image", "none"}, {"command", std::move(command)}});
  if (!workload.memory_request.empty()) container.make({"resources", "requests", "memory"}) = workload.memory_request;
  if (!workload.cpu_request.empty()) container.make({"resources", "requests", "cpu"}) = workload.cpu_request;
  if (!workload.memory_limit.empty()) container.make({"resources", "limits", "memory"}) = workload.memory_limit;
  Json spec = Json::object({{"containers", Json::array({std::move(container)})}});
  if (!workload.node.empty()) spec["nodeName"] = workload.node;
  if (!workload.priority_class.empty()) spec["priorityClassName"] = workload.priority_class;
  if (!workload.toleration_seconds) return spec;
  Json tolerations = Json::array();
  for (const std::string_view key : {api::kTaintNodeNotReady, api::kTaintNodeUnreachable}) {
    tolerations.if_array()->push_back(Json::object({{"key", std::string(key)},
                                                    {"operator", "Exists"},
                                                    {"effect", std::string(api::kNoExecute)},
                                                    {"tolerationSeconds", *workload.toleration_seconds}}));
  }
  spec["tolerations"] = std::move(tolerations);
  return spec;
}

Json object_of(const Workload& workload) {
  Json spec = pod_spec_of(workload);
  if (workload.kind == "DaemonSet") return daemon_set(workload.name, std::move(spec));
  if (workload.kind == "ReplicaSet") return replica_set(workload.name, workload.replicas, std::move(spec));
  return deployment(workload.name, workload.replicas, std::move(spec), workload.max_unavailable, workload.max_surge);
}

void add_workload(const Workload& workload, Inventory& out) {
  Json object = object_of(workload);
  if (workload.ns != "default") {
    out.objects.push_back({"/api/v1/namespaces", Json::object({{"apiVersion", "v1"},
                                                               {"kind", "Namespace"},
                                                               {"metadata", Json::object({{"name", workload.ns}})}})});
  }
  out.objects.push_back(
      {fmt::format("/apis/apps/v1/namespaces/{}/{}", workload.ns, plural_of(workload.kind)), std::move(object)});
  if (!workload.budget_available) return;
  out.objects.push_back(
      {fmt::format("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", workload.ns),
       Json::object(
           {{"apiVersion", "policy/v1"},
            {"kind", "PodDisruptionBudget"},
            {"metadata", Json::object({{"name", workload.name}})},
            {"spec",
             Json::object({{"minAvailable", *workload.budget_available},
                           {"selector", Json::object({{"matchLabels", Json::object({{"app", workload.name}})}})}})}})});
}

bool has_label(const MachineSpec& machine, const std::pair<std::string, std::string>& label) {
  const auto found = machine.labels.find(label.first);
  return found != machine.labels.end() && found->second == label.second;
}

bool is_chosen(const NodeChoice& choice, const MachineSpec& machine) {
  if (choice.zone && !has_label(machine, {"topology.kubernetes.io/zone", *choice.zone})) return false;
  if (choice.label && !has_label(machine, *choice.label)) return false;
  return choice.names.empty() || std::ranges::any_of(choice.names, [&machine](const std::string& glob) {
           return matches_glob(glob, machine.name);
         });
}

}  // namespace

std::string_view plural_of(std::string_view kind) {
  if (kind == "DaemonSet") return "daemonsets";
  return kind == "Deployment" ? "deployments" : "replicasets";
}

Inventory inventory_of(const GeneratedCluster& cluster) {
  Inventory out;
  for (std::int64_t i = 0; i < cluster.nodes; ++i) {
    MachineSpec machine{.name = fmt::format("node-{:05}", i),
                        .labels = {},
                        .memory = cluster.memory,
                        .cpu_milli = cluster.cpu_milli,
                        .disk = cluster.disk,
                        .swap = cluster.swap};
    const std::string zone = fmt::format("zone-{}", i % cluster.zones);
    machine.labels["topology.kubernetes.io/zone"] = zone;
    if (cluster.racks > 0) machine.labels["rack"] = fmt::format("{}-rack-{}", zone, i / cluster.zones % cluster.racks);
    out.machines.push_back(std::move(machine));
  }
  Workload plain;
  plain.name = "web";
  plain.replicas = cluster.nodes * cluster.pods_per_node;
  if (plain.replicas > 0) add_workload(plain, out);
  for (const Workload& each : cluster.workloads) add_workload(each, out);
  return out;
}

std::vector<MachineSpec> machines_of(const Scenario& scenario) {
  if (const auto* imported = std::get_if<Inventory>(&scenario.cluster)) return imported->machines;
  return inventory_of(std::get<GeneratedCluster>(scenario.cluster)).machines;
}

std::vector<std::size_t> chosen_nodes(const NodeChoice& choice, const std::vector<MachineSpec>& machines) {
  if (!choice.only.empty()) return choice.only;
  std::vector<std::size_t> nodes;
  std::size_t seen = 0;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    if (!is_chosen(choice, machines[i])) continue;
    if (seen++ < choice.skip) continue;
    if ((seen - 1 - choice.skip) % choice.every == 0) nodes.push_back(i);
  }
  return nodes;
}

}  // namespace spillway::sim
