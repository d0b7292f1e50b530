#include "policy/lifecycle/condition_taints.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace spillway::lifecycle {
namespace {

struct ConditionTaint {
  std::string_view type;
  std::string_view status;
  std::string_view taint;
};

constexpr std::array kConditionTaints = {
    ConditionTaint{"Ready", "False", api::kTaintNodeNotReady},
    ConditionTaint{"Ready", "Unknown", api::kTaintNodeUnreachable},
    ConditionTaint{"MemoryPressure", "True", api::kTaintNodeMemoryPressure},
    ConditionTaint{"DiskPressure", "True", api::kTaintNodeDiskPressure},
    ConditionTaint{"NetworkUnavailable", "True", api::kTaintNodeNetworkUnavailable},
    ConditionTaint{"PIDPressure", "True", api::kTaintNodePidPressure},
};

constexpr std::array kCopiedLabels = {
    std::pair{std::string_view("kubernetes.io/arch"), std::string_view("beta.kubernetes.io/arch")},
    std::pair{std::string_view("kubernetes.io/os"), std::string_view("beta.kubernetes.io/os")},
};

bool is_condition_taint(const api::Taint& taint) {
  if (taint.effect != api::kNoSchedule) return false;
  return taint.key == api::kTaintNodeUnschedulable ||
         std::ranges::any_of(kConditionTaints, [&](const ConditionTaint& row) { return row.taint == taint.key; });
}

bool same(const api::Taint& a, const api::Taint& b) {
  return a.key == b.key && a.effect == b.effect;
}

bool contains(const std::vector<api::Taint>& taints, const api::Taint& taint) {
  return std::ranges::any_of(taints, [&](const api::Taint& each) { return same(each, taint); });
}

std::vector<api::Taint> wanted_taints(const api::Node& node) {
  std::vector<api::Taint> wanted;
  const auto want = [&wanted](std::string_view key) {
    wanted.push_back({std::string(key), {}, std::string(api::kNoSchedule), {}});
  };
  for (const api::NodeCondition& condition : node.status.conditions) {
    for (const ConditionTaint& row : kConditionTaints) {
      if (row.type == condition.type && row.status == condition.status) want(row.taint);
    }
  }
  if (node.spec.unschedulable) want(api::kTaintNodeUnschedulable);
  return wanted;
}

}  // namespace

TaintChange condition_taint_change(const api::Node& node) {
  const std::vector<api::Taint> wanted = wanted_taints(node);
  TaintChange change;
  for (const api::Taint& taint : wanted) {
    if (!contains(node.spec.taints, taint)) change.add.push_back(taint);
  }
  for (const api::Taint& taint : node.spec.taints) {
    if (is_condition_taint(taint) && !contains(wanted, taint)) change.remove.push_back(taint);
  }
  return change;
}

api::StringMap label_changes(const api::StringMap& labels) {
  api::StringMap changes;
  for (const auto& [from, to] : kCopiedLabels) {
    const auto source = labels.find(from);
    if (source == labels.end()) continue;
    const auto target = labels.find(to);
    if (target == labels.end() || target->second != source->second) changes.emplace(to, source->second);
  }
  return changes;
}

bool put_taint(std::vector<api::Taint>& taints, const api::Taint& taint) {
  const auto known = std::ranges::find_if(taints, [&](const api::Taint& each) { return same(each, taint); });
  if (known == taints.end()) {
    taints.push_back(taint);
    return true;
  }
  if (*known == taint) return false;
  *known = taint;
  return true;
}

bool erase_taint(std::vector<api::Taint>& taints, const api::Taint& taint) {
  return std::erase_if(taints, [&](const api::Taint& each) { return same(each, taint); }) > 0;
}

bool has_taint(const std::vector<api::Taint>& taints, std::string_view key, std::string_view effect) {
  return std::ranges::any_of(taints, [&](const api::Taint& each) { return each.key == key && each.effect == effect; });
}

}  // namespace spillway::lifecycle
