#include "agent/config/enforcement_config.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;

constexpr std::string_view kEnforced = "enforceNodeAllocatable";
constexpr std::string_view kPods = "pods";
constexpr std::string_view kNone = "none";

/// The two ways to limit one group of daemons, and where its cgroup is named.
struct GroupWords {
  std::string_view all;
  std::string_view compressible;
  std::string_view cgroup_key;
  std::string_view cgroup_flag;
};

constexpr GroupWords kSystem{"system-reserved", "system-reserved-compressible", "systemReservedCgroup",
                             "--system-reserved-cgroup"};
constexpr GroupWords kKube{"kube-reserved", "kube-reserved-compressible", "kubeReservedCgroup",
                           "--kube-reserved-cgroup"};

/// Checks that all words are known, each given once, and "none" is alone.
Outcome check_words(const Json::Array& list) {
  constexpr std::array kKnown = {kPods, kSystem.all, kSystem.compressible, kKube.all, kKube.compressible, kNone};
  std::set<std::string_view> seen;
  for (const Json& each : list) {
    const std::string_view word = *each.if_string();
    if (!seen.insert(word).second) {
      return invalid(kEnforced, "duplicated enforcements \"{}\" in enforceNodeAllocatable (--enforce-node-allocatable)",
                     word);
    }
    if (std::ranges::find(kKnown, word) == kKnown.end()) {
      return invalid(kEnforced,
                     "option \"{}\" specified for enforceNodeAllocatable (--enforce-node-allocatable). Valid options "
                     "are \"{}\", \"{}\", \"{}\", \"{}\", \"{}\" or \"{}\"",
                     word, kPods, kSystem.all, kSystem.compressible, kKube.all, kKube.compressible, kNone);
    }
    if (word == kNone && list.size() > 1) {
      return invalid(kEnforced,
                     "enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional enforcements when "
                     "\"{}\" is specified",
                     kNone);
    }
  }
  return {};
}

Result<ReservedGroup> group_of(const Json& effective, const Json::Array& list, const GroupWords& words) {
  const auto contains = [&list](std::string_view word) { return std::ranges::find(list, Json(word)) != list.end(); };
  const bool all = contains(words.all);
  const bool compressible = contains(words.compressible);
  if (all && compressible) {
    return invalid(kEnforced,
                   "both \"{}\" and \"{}\" cannot be specified together in enforceNodeAllocatable "
                   "(--enforce-node-allocatable)",
                   words.all, words.compressible);
  }
  ReservedGroup group{.cgroup = std::string(effective.string_at({words.cgroup_key}))};
  if (all) group.limits = ReservedLimits::kAll;
  if (compressible) group.limits = ReservedLimits::kCompressible;
  if (group.limits != ReservedLimits::kNone && group.cgroup.empty()) {
    return invalid(kEnforced,
                   "{} ({}) must be specified when \"{}\" or \"{}\" included in enforceNodeAllocatable "
                   "(--enforce-node-allocatable)",
                   words.cgroup_key, words.cgroup_flag, words.all, words.compressible);
  }
  return group;
}

}  // namespace

Result<EnforcementSettings> enforcement_of(const Json& effective) {
  static const Json::Array kNobody;
  const Json* given = effective.find(kEnforced);
  const Json::Array& list = given == nullptr || given->if_array() == nullptr ? kNobody : *given->if_array();
  SPILLWAY_TRY_VOID(check_words(list));
  const Json* by_class = effective.find("cgroupsPerQOS");
  if (by_class != nullptr && by_class->if_bool() == false && !list.empty() && list.front() != Json(kNone)) {
    return invalid(kEnforced,
                   "cgroupsPerQOS (--cgroups-per-qos) must be set to true when \"{}\" contained in "
                   "enforceNodeAllocatable (--enforce-node-allocatable)",
                   *list.front().if_string());
  }
  EnforcementSettings settings;
  SPILLWAY_TRY(system, group_of(effective, list, kSystem));
  SPILLWAY_TRY(kube, group_of(effective, list, kKube));
  settings.system = std::move(system);
  settings.kube = std::move(kube);
  const bool any_cgroup = !settings.system.cgroup.empty() || !settings.kube.cgroup.empty();
  if (any_cgroup && !effective.string_at({"reservedSystemCPUs"}).empty()) {
    return invalid("reservedSystemCPUs",
                   "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup "
                   "(--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)");
  }
  return settings;
}

}  // namespace spillway::agent
