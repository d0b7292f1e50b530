#include "policy/scheduling/filter.h"

#include "api/node_affinity.h"

#include <fmt/format.h>

#include <array>

namespace spillway::scheduling {

namespace {

using policy::ReasonCode;

constexpr std::array<std::string_view, 2> kRepelling{api::kNoSchedule, api::kNoExecute};

Misfit misfit(ReasonCode code, std::vector<policy::Fact> facts, std::string text) {
  return {policy::Reason{code, std::move(facts)}, std::move(text)};
}

void check_taints(const api::Pod& pod, const api::Node& node, std::vector<Misfit>& misfits) {
  if (node.spec.unschedulable) {
    const api::Taint cordon{std::string(api::kTaintNodeUnschedulable), "", std::string(api::kNoSchedule), {}};
    if (api::find_untolerated(std::span(&cordon, 1), pod.spec.tolerations, kRepelling) != nullptr) {
      misfits.push_back(misfit(ReasonCode::kNodeUnschedulable, {}, "node(s) were unschedulable"));
    }
  }
  const api::Taint* taint = api::find_untolerated(node.spec.taints, pod.spec.tolerations, kRepelling);
  // A cordoned node carries the unschedulable taint as well; one reason is enough.
  if (taint == nullptr || (node.spec.unschedulable && taint->key == api::kTaintNodeUnschedulable)) return;
  misfits.push_back(misfit(ReasonCode::kUntoleratedTaint, {{"key", taint->key}, {"effect", taint->effect}},
                           fmt::format("node(s) had untolerated taint {{{}: {}}}", taint->key, taint->value)));
}

void check_resources(const PendingPod& pod, const NodeLoad& load, std::vector<Misfit>& misfits) {
  const api::ResourceList& allocatable = load.node->status.allocatable;
  const auto available_of = [&allocatable](std::string_view name) {
    const auto found = allocatable.find(name);
    return found == allocatable.end() ? api::Quantity() : found->second;
  };
  if (const std::int64_t most = available_of("pods").value(); load.pod_count + 1 > most) {
    misfits.push_back(
        misfit(ReasonCode::kTooManyPods, {{"pods", load.pod_count}, {"pods_max", most}}, "Too many pods"));
  }
  for (const auto& [name, wanted] : pod.requests) {
    if (wanted.is_zero()) continue;
    const auto used = load.requested.find(name);
    const api::Quantity total = used == load.requested.end() ? wanted : used->second + wanted;
    const api::Quantity available = available_of(name);
    if (total <= available) continue;
    misfits.push_back(misfit(ReasonCode::kInsufficientResource,
                             {{"resource", name},
                              {"requested", wanted.to_string()},
                              {"used", used == load.requested.end() ? std::string("0") : used->second.to_string()},
                              {"allocatable", available.to_string()}},
                             fmt::format("Insufficient {}", name)));
  }
}

}  // namespace

std::vector<Misfit> find_misfits(const PendingPod& pod, const NodeLoad& load) {
  std::vector<Misfit> misfits;
  const api::Node& node = *load.node;
  check_taints(*pod.pod, node, misfits);
  const Result<bool> matches = pod.required.matches(node.metadata);
  if (!matches || !*matches) {
    misfits.push_back(
        misfit(ReasonCode::kNodeSelectorMismatch, {}, "node(s) didn't match Pod's node affinity/selector"));
  }
  if (load.ports.conflicts_with(pod.pod->spec)) {
    misfits.push_back(
        misfit(ReasonCode::kPortConflict, {}, "node(s) didn't have free ports for the requested pod ports"));
  }
  check_resources(pod, load, misfits);
  return misfits;
}

}  // namespace spillway::scheduling
