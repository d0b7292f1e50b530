// vectors/kubelet-surface: cpu_weights, swap_limits, hugepage_limits, memory_qos, oom_score.
#include "agent/containers/pod_resources.h"
#include "agent/cri/linux_resources.h"
#include "api/codec/codec.h"
#include "host/cgroup/cgroup_limits.h"
#include "host/pods/pod_limits.h"
#include "support/vectors.h"

#include <algorithm>
#include <memory>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

std::int64_t number(const Json& in, std::string_view member) {
  return in.find(member)->if_int64().value();
}

bool flag(const Json& in, std::string_view member) {
  return in.find(member)->if_bool().value();
}

api::Pod decode_pod(const Json& document) {
  Json whole = document;
  whole["apiVersion"] = "v1";
  whole["kind"] = "Pod";
  return api::decode<api::Pod>(whole).value();
}

/// A pod with one container that has these resources.
api::Pod pod_with(const Json& resources) {
  Json pod = Json::object({{"metadata", Json::object({{"name", "p"}, {"namespace", "default"}})}});
  pod.make({"spec", "containers"}) = Json::array({Json::object({{"name", "c0"}, {"resources", resources}})});
  return decode_pod(pod);
}

CreatePod command_of(const Json& document) {
  auto pod = std::make_shared<const api::Pod>(decode_pod(document));
  CreatePod command = create_pod_command(*pod);
  command.definition = std::move(pod);
  return command;
}

struct Pods {
  std::vector<CreatePod> commands;
  std::vector<const CreatePod*> all;
};

std::unique_ptr<Pods> pods_in(const Json& in) {
  auto pods = std::make_unique<Pods>();
  for (const Json& each : *in.find("pods")->if_array()) pods->commands.push_back(command_of(each));
  for (const CreatePod& each : pods->commands) pods->all.push_back(&each);
  return pods;
}

/// A number that a message of the CRI leaves out is 0.
std::int64_t or_zero(const Json& resources, std::string_view member) {
  const Json* found = resources.find(member);
  return found == nullptr ? 0 : found->if_int64().value();
}

Json unified(const Json& resources) {
  const Json* found = resources.find("unified");
  return found == nullptr ? Json::object() : *found;
}

Json or_null(const std::optional<std::int64_t>& value) {
  return value ? Json(*value) : Json();
}

Json weights(const std::optional<std::int64_t>& shares) {
  if (!shares) return {};
  return Json::object({{"shares", *shares}, {"weight", host::cpu_weight_of(*shares)}});
}

Json cpu_container(const Json& in) {
  ResourceFacts facts;
  facts.cgroup_v2 = number(in, "cgroup") == 2;
  facts.cpu_cfs_quota = flag(in, "cpu_cfs_quota");
  if (flag(in, "gate_CustomCPUCFSQuotaPeriod")) facts.cpu_period_micros = number(in, "period_us");
  facts.single_process_oom_kill = flag(in, "single_process_oom_kill");
  const api::Pod pod = pod_with(*in.find("resources"));
  const Json made = container_resources(pod, pod.spec.containers.front(), facts);
  Json got = Json::object({{"unified", unified(made)}});
  for (const std::string_view member : {"cpu_period", "cpu_quota", "cpu_shares", "memory_limit_in_bytes"})
    got[member] = or_zero(made, member);
  return got;
}

Json cpu_pod(const Json& in) {
  ResourceFacts facts;
  facts.cpu_cfs_quota = flag(in, "cpu_cfs_quota");
  facts.cpu_period_micros = number(in, "period_us");
  const CreatePod command = command_of(*in.find("pod"));
  const host::CgroupLimits limits = host::pod_limits(command, facts);
  return Json::object({{"qos", to_string(command.qos)},
                       {"cpu_shares", or_null(limits.cpu_shares)},
                       {"cpu_quota", or_null(limits.cpu_quota_micros)},
                       {"cpu_period", limits.cpu_quota_micros ? Json(limits.cpu_period_micros) : Json()},
                       {"memory", limits.memory ? Json(limits.memory->count()) : Json()}});
}

Json cpu_classes(const Json& in) {
  const auto pods = pods_in(in);
  Json got = Json::object();
  for (const api::QosClass qos : {api::QosClass::kGuaranteed, api::QosClass::kBurstable, api::QosClass::kBestEffort})
    got[to_string(qos)] = weights(host::class_limits(qos, pods->all, {}).cpu_shares);
  return got;
}

std::optional<Mismatch> cpu_weights(const Json& row) {
  const Json& in = *row.find("in");
  const std::string_view op = row.string_at({"op"});
  Json want = *row.find("want");
  Json got;
  if (op == "milli_to_shares") {
    const std::int64_t shares = host::cpu_shares_of(number(in, "milli_cpu"));
    got = Json::object({{"shares", shares}, {"weight", host::cpu_weight_of(shares)}});
  }
  if (op == "milli_to_quota") {
    const std::int64_t milli = number(in, "milli_cpu");
    const auto quota = host::cpu_quota_micros_of(milli, number(in, "period_us")).value_or(0);
    // Without the gate for other quota periods, since the function for containers does not know it.
    got = Json::object({{"pod_quota_us", host::cpu_quota_micros_of(milli).value_or(0)}, {"container_quota_us", quota}});
  }
  if (op == "shares_to_weight") {
    const std::int64_t weight = host::cpu_weight_of(number(in, "shares"));
    got = Json::object({{"formula_weight", weight}, {"written_weight", weight}});
  }
  if (op == "container") got = cpu_container(in);
  if (op == "pod") got = cpu_pod(in);
  if (op == "qos_cgroups") got = cpu_classes(in);
  // Conversions back, which the agent does not need.
  for (const std::string_view member : {"milli_back", "shares_back"}) want.if_object()->erase(member);
  return support::compare(want, got);
}

std::optional<Mismatch> swap_limits(const Json& row) {
  const Json& in = *row.find("in");
  const Json* node = in.find("node");
  ResourceFacts facts;
  facts.single_process_oom_kill = true;
  if (node == nullptr) {
    facts.machine_memory = Bytes{number(in, "memory")};
    facts.machine_swap = Bytes{number(in, "swap")};
    const auto share = swap_share(number(in, "request"), facts);
    Json got = Json::object({{"swap", share.value_or(0)}});
    if (!share) got["error"] = share.error().message;
    return support::compare(*row.find("want"), got);
  }
  facts.cgroup_v2 = number(*node, "cgroup") == 2;
  facts.node_swap = flag(*node, "gate_NodeSwap");
  facts.swap_behavior = node->string_at({"swap_behavior"});
  facts.swap_controller = flag(*node, "swap_controller");
  facts.machine_memory = Bytes{number(*node, "memory")};
  facts.machine_swap = Bytes{number(*node, "swap")};
  const api::Pod pod = decode_pod(*in.find("pod"));
  const auto subject = std::ranges::find(pod.spec.containers, in.string_at({"container"}), &api::Container::name);
  const Json made = container_resources(pod, *subject, facts);
  return support::compare(*row.find("want"),
                          Json::object({{"qos", to_string(api::qos_of(pod))},
                                        {"unified", unified(made)},
                                        {"memory_limit_in_bytes", or_zero(made, "memory_limit_in_bytes")},
                                        {"memory_swap_limit_in_bytes", or_zero(made, "memory_swap_limit_in_bytes")}}));
}

std::optional<Mismatch> hugepage_limits(const Json& row) {
  const Json& in = *row.find("in");
  if (row.string_at({"op"}) == "pod") {
    Json limits = Json::object();
    for (const auto& [size, bytes] : host::pod_limits(command_of(*in.find("pod")), {}).huge_pages)
      limits[std::to_string(size)] = bytes.count();
    return support::compare(*row.find("want"), Json::object({{"limit_by_page_bytes", std::move(limits)}}));
  }
  std::vector<std::string> files;
  for (const Json& each : *in.find("files")->if_array()) files.emplace_back(each.string_at({}));
  ResourceFacts facts;
  facts.huge_page_sizes = huge_page_sizes(files);
  const api::Pod pod = pod_with(Json::object({{"limits", *in.find("limits")}}));
  Json got = Json::object({{"page_sizes", Json::Array(facts.huge_page_sizes.begin(), facts.huge_page_sizes.end())},
                           {"hugepage_limits", Json::array()}});
  const Json made = container_resources(pod, pod.spec.containers.front(), facts);
  if (const Json* limits = made.find("hugepage_limits")) {
    for (const Json& each : *limits->if_array()) {
      Json entry = each;
      entry["limit"] = or_zero(each, "limit");
      got["hugepage_limits"].if_array()->push_back(std::move(entry));
    }
  }
  return support::compare(*row.find("want"), got);
}

/// 0 is the default of a cgroup. It is written to overwrite the value of earlier pods.
Json memory_min(const std::optional<Bytes>& bytes) {
  Json made = Json::object();
  if (bytes && *bytes > Bytes()) made["memory.min"] = fmt::format("{}", bytes->count());
  return made;
}

std::optional<Mismatch> memory_qos(const Json& row) {
  const Json& in = *row.find("in");
  const std::string_view op = row.string_at({"op"});
  ResourceFacts facts;
  facts.single_process_oom_kill = true;
  facts.memory_qos.emplace();
  Json got;
  if (op == "container") {
    const Json& node = *in.find("node");
    facts.memory_qos->throttling_factor = node.find("memory_throttling_factor")->if_double().value();
    facts.memory_qos->page_size = number(node, "page_size");
    facts.memory_qos->allocatable = node.find("allocatable_memory")->if_int64();
    const api::Pod pod = pod_with(*in.find("resources"));
    got = Json::object({{"unified", unified(container_resources(pod, pod.spec.containers.front(), facts))}});
  }
  if (op == "pod") {
    if (!flag(in, "memory_qos")) facts.memory_qos.reset();
    const CreatePod command = command_of(*in.find("pod"));
    const host::CgroupLimits limits = host::pod_limits(command, facts);
    got = Json::object({{"qos", to_string(command.qos)},
                        {"memory_max", limits.memory ? Json(limits.memory->count()) : Json()},
                        {"unified", memory_min(limits.memory_min)}});
  }
  if (op == "qos_cgroups") {
    const auto pods = pods_in(in);
    got = Json::object();
    for (const api::QosClass qos : {api::QosClass::kGuaranteed, api::QosClass::kBurstable, api::QosClass::kBestEffort})
      got[to_string(qos)] = memory_min(host::class_limits(qos, pods->all, facts).memory_min);
  }
  return support::compare(*row.find("want"), got);
}

std::optional<Mismatch> oom_score(const Json& row) {
  const Json& in = *row.find("in");
  const api::Pod pod = decode_pod(*in.find("pod"));
  Json scores = Json::object();
  for (const auto* list : {&pod.spec.init_containers, &pod.spec.containers}) {
    for (const api::Container& each : *list) scores[each.name] = oom_score_adj(pod, each, Bytes{number(in, "memory")});
  }
  return support::compare(*row.find("want"),
                          Json::object({{"qos", to_string(api::qos_of(pod))}, {"oom_score_adj", std::move(scores)}}));
}

const bool kCpuWeights = support::add_vector_check("kubelet-surface/cpu_weights", cpu_weights);
const bool kSwapLimits = support::add_vector_check("kubelet-surface/swap_limits", swap_limits);
const bool kHugePageLimits = support::add_vector_check("kubelet-surface/hugepage_limits", hugepage_limits);
const bool kMemoryQos = support::add_vector_check("kubelet-surface/memory_qos", memory_qos);
const bool kOomScore = support::add_vector_check("kubelet-surface/oom_score", oom_score);

}  // namespace
}  // namespace spillway::agent
