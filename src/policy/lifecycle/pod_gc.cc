#include "policy/lifecycle/pod_gc.h"

#include "policy/lifecycle/node_health.h"

#include <algorithm>
#include <tuple>

namespace spillway::lifecycle {
namespace {

bool is_out_of_service(const api::Node& node) {
  return readiness_of(node) != Readiness::kTrue &&
         std::ranges::any_of(node.spec.taints, [](const api::Taint& taint) { return taint.key == kTaintOutOfService; });
}

std::vector<const api::Pod*> surplus_of_finished(std::span<const api::Pod* const> pods, std::int64_t threshold) {
  std::vector<const api::Pod*> finished;
  std::ranges::copy_if(pods, std::back_inserter(finished), [](const api::Pod* pod) { return api::is_terminal(*pod); });
  const auto surplus = static_cast<std::int64_t>(finished.size()) - threshold;
  if (threshold <= 0 || surplus <= 0) return {};
  const auto rank = [](const api::Pod* pod) {
    return std::tuple(pod->status.reason != "Evicted", pod->metadata.creation_timestamp.value_or(WallTime()),
                      pod->key());
  };
  std::ranges::sort(finished, {}, rank);
  finished.resize(static_cast<std::size_t>(surplus));
  return finished;
}

}  // namespace

std::string_view to_string(PodGarbage reason) {
  switch (reason) {
    case PodGarbage::kTerminated:
      return "terminated";
    case PodGarbage::kOrphaned:
      return "orphaned";
    case PodGarbage::kUnscheduled:
      return "unscheduled";
    case PodGarbage::kOutOfService:
      return "out-of-service";
  }
  return {};
}

std::set<std::string, std::less<>> missing_nodes(const PodGcView& view) {
  std::set<std::string, std::less<>> missing;
  for (const api::Pod* pod : view.pods) {
    const std::string& node = pod->spec.node_name;
    if (!node.empty() && !missing.contains(node) && view.find_node(node) == nullptr) missing.insert(node);
  }
  return missing;
}

std::vector<PodToCollect> pods_to_collect(const PodGcView& view, std::int64_t terminated_threshold) {
  std::vector<PodToCollect> result;
  std::set<const api::Pod*> taken;  // only asked, never walked: addresses decide no order
  const auto collect = [&](const api::Pod* pod, PodGarbage reason) {
    if (taken.insert(pod).second) result.push_back({pod, reason});
  };
  for (const api::Pod* pod : surplus_of_finished(view.pods, terminated_threshold)) {
    collect(pod, PodGarbage::kTerminated);
  }
  for (const api::Pod* pod : view.pods) {
    if (view.gone.contains(pod->spec.node_name)) collect(pod, PodGarbage::kOrphaned);
  }
  for (const api::Pod* pod : view.pods) {
    if (pod->metadata.deletion_timestamp && pod->spec.node_name.empty()) collect(pod, PodGarbage::kUnscheduled);
  }
  for (const api::Pod* pod : view.pods) {
    if (!pod->metadata.deletion_timestamp || pod->spec.node_name.empty()) continue;
    const api::Node* node = view.find_node(pod->spec.node_name);
    if (node != nullptr && is_out_of_service(*node)) collect(pod, PodGarbage::kOutOfService);
  }
  return result;
}

}  // namespace spillway::lifecycle
