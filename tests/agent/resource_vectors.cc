// vectors/node-agent: allocatable, pod_cgroup_config.
#include "agent/containers/pod_resources.h"
#include "agent/node/allocatable.h"
#include "api/codec/codec.h"
#include "host/cgroup/cgroup_limits.h"
#include "support/vectors.h"

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

api::ResourceList resources(const Json* list) {
  api::ResourceList result;
  if (list == nullptr || !list->is_object()) return result;
  for (const auto& [name, amount] : *list->if_object()) {
    result.emplace(name, api::parse_quantity(*amount.if_string()).value());
  }
  return result;
}

/// Amounts in thousandths: equal amounts are equal, however they are printed (5000000000 is 5G).
Json in_milli(const api::ResourceList& list) {
  Json result = Json::object();
  for (const auto& [name, amount] : list) result[name] = amount.milli_value();
  return result;
}

std::vector<eviction::Threshold> thresholds_of(const Json& list) {
  std::vector<eviction::Threshold> thresholds;
  for (const Json& each : *list.if_array()) {
    const auto signal = eviction::parse_signal(each.string_at({"signal"}));
    if (!signal) continue;
    eviction::Threshold threshold{.signal = *signal};
    if (const Json* share = each.find("percentage")) {
      threshold.value = eviction::Fraction{static_cast<float>(share->if_double().value())};
    } else {
      threshold.value = api::parse_quantity(each.string_at({"quantity"})).value();
    }
    thresholds.push_back(std::move(threshold));
  }
  return thresholds;
}

Json kubepods(const GroupLimits& limits) {
  Json result = Json::object();
  if (limits.memory) result["memoryLimitBytes"] = limits.memory->count();
  if (limits.cpu_milli) result["cpuShares"] = host::cpu_shares_of(*limits.cpu_milli);
  if (limits.pids_max) result["pidsLimit"] = *limits.pids_max;
  Json pages = Json::object();
  for (const auto& [size, amount] : limits.huge_pages) pages[std::to_string(size)] = amount.count();
  result["hugePageLimits"] = std::move(pages);
  return result;
}

std::optional<Mismatch> allocatable(const Json& row) {
  const api::ResourceList capacity = resources(row.find("capacity"));
  const api::ResourceList internal = resources(row.find("internalCapacity"));
  const Reserved reserved{.system = resources(row.find("systemReserved")), .kube = resources(row.find("kubeReserved"))};
  const api::ResourceList hard =
      hard_eviction_reservation(thresholds_of(*row.find("hardEvictionThresholds")), capacity);
  const api::ResourceList reservation = reservation_of(capacity, reserved, hard);
  const api::ResourceList inner = without_reservation(internal, reservation_of(internal, reserved, {}));

  Json want = Json::object();
  Json got = Json::object();
  const auto check = [&](std::string_view member, const api::ResourceList& list) {
    want[member] = in_milli(resources(row.find(member)));
    got[member] = in_milli(list);
  };
  check("hardEvictionReservation", hard);
  check("reservation", reservation);
  check("allocatableBeforeHugepages", without_reservation(capacity, reservation));
  check("absoluteAllocatable", without_reservation(capacity, reservation_of(capacity, reserved, {})));
  check("cgroupAllocatable", inner);
  want["kubepodsCgroup"] = *row.find("kubepodsCgroup");
  got["kubepodsCgroup"] = kubepods(group_limits(inner));
  want["overReserved"] = row.find("overReserved") == nullptr ? Json::array() : *row.find("overReserved");
  Json over = Json::array();
  for (const std::string& resource : over_reserved(capacity, reservation)) over.if_array()->push_back(resource);
  want["validation"] = *row.find("validation");
  got["validation"] = over.if_array()->empty() ? "ok" : "invalid";
  got["overReserved"] = std::move(over);
  return support::compare(want, got);
}

std::optional<Mismatch> pod_cgroup_config(const Json& row) {
  const api::Pod pod =
      api::decode<api::Pod>(Json::object({{"apiVersion", "v1"}, {"kind", "Pod"}, {"spec", *row.find("spec")}})).value();
  const Bytes memory{row.find("nodeMemoryCapacityBytes")->if_int64().value()};
  const CreatePod command = create_pod_command(pod);
  const std::int64_t shares = host::cpu_shares_of(command.cpu_request_milli);
  Json cgroup = Json::object({{"cpuShares", shares}, {"cpuWeightV2", host::cpu_weight_of(shares)}});
  const auto quota = host::cpu_quota_micros_of(command.cpu_limit_milli.value_or(0));
  if (quota) {
    cgroup["cpuQuotaMicros"] = *quota;
    cgroup["cpuPeriodMicros"] = host::kCpuPeriodMicros;
  }
  if (command.memory_limit) cgroup["memoryLimitBytes"] = command.memory_limit->count();
  Json scores = Json::object();
  for (const auto* list : {&pod.spec.init_containers, &pod.spec.containers}) {
    for (const api::Container& each : *list) scores[each.name] = oom_score_adj(pod, each, memory);
  }
  Json want = row;
  for (const std::string_view key : {"id", "nodeMemoryCapacityBytes", "spec"}) want.if_object()->erase(key);
  return support::compare(want, Json::object({{"qosClass", to_string(command.qos)},
                                              {"podCgroup", std::move(cgroup)},
                                              {"oomScoreAdj", std::move(scores)}}));
}

const bool kAllocatable = support::add_vector_check("node-agent/allocatable", allocatable);
const bool kPodCgroup = support::add_vector_check("node-agent/pod_cgroup_config", pod_cgroup_config);

}  // namespace
}  // namespace spillway::agent
