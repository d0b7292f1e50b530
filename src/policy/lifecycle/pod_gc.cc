#include "policy/lifecycle/pod_gc.h"

#include "policy/lifecycle/node_health.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace spillway::lifecycle {
namespace {

bool is_out_of_service(const api::Node& node) {
  return readiness_of(node) != Readiness::kTrue &&
         std::ranges::any_of(node.spec.taints, [](const api::Taint& taint) { return taint.key == kTaintOutOfService; });
}

WallTime made_at(const api::Pod& pod) {
  return pod.metadata.creation_timestamp.value_or(WallTime());
}

/// Namespace and UID of the owner; the UID is empty for a pod without a controller.
std::pair<std::string, std::string> owner_key(const api::Pod& pod) {
  const api::OwnerReference* const owner = api::controller_of(pod.metadata);
  return {pod.metadata.ns, owner == nullptr ? std::string() : owner->uid};
}

/// Keeps the pods to delete, in the order in which to delete them.
void keep_fair_surplus(std::vector<const api::Pod*>& finished, std::size_t surplus) {
  const auto rank = [](const api::Pod* pod) { return std::tuple(made_at(*pod), pod->key()); };
  std::ranges::sort(finished, {}, rank);
  std::map<std::pair<std::string, std::string>, std::deque<const api::Pod*>> by_owner;
  for (const api::Pod* pod : finished) by_owner[owner_key(*pod)].push_back(pod);
  using Queue = std::deque<const api::Pod*>;
  const auto goes_later = [&rank](const Queue* a, const Queue* b) {
    return a->size() != b->size() ? a->size() < b->size() : rank(a->front()) > rank(b->front());
  };
  std::vector<Queue*> owners;
  for (auto& [owner, pods] : by_owner) owners.push_back(&pods);
  std::ranges::make_heap(owners, goes_later);
  finished.clear();
  while (finished.size() < surplus) {
    std::ranges::pop_heap(owners, goes_later);
    Queue& most = *owners.back();
    finished.push_back(most.front());
    most.pop_front();
    if (most.empty()) {
      owners.pop_back();
    } else {
      std::ranges::push_heap(owners, goes_later);
    }
  }
}

std::vector<const api::Pod*> surplus_of_finished(std::span<const api::Pod* const> pods, const FinishedKept& kept) {
  std::vector<const api::Pod*> finished;
  std::ranges::copy_if(pods, std::back_inserter(finished), [](const api::Pod* pod) { return api::is_terminal(*pod); });
  const auto surplus = static_cast<std::int64_t>(finished.size()) - kept.threshold;
  if (kept.threshold <= 0 || surplus <= 0) return {};
  if (kept.order == FinishedOrder::kFair) {
    keep_fair_surplus(finished, static_cast<std::size_t>(surplus));
    return finished;
  }
  const auto rank = [](const api::Pod* pod) {
    return std::tuple(pod->status.reason != "Evicted", made_at(*pod), pod->key());
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

std::vector<PodToCollect> pods_to_collect(const PodGcView& view, const FinishedKept& kept) {
  std::vector<PodToCollect> result;
  std::set<const api::Pod*> taken;  // for look-ups only: iteration would be in the order of addresses
  const auto collect = [&](const api::Pod* pod, PodGarbage reason) {
    if (taken.insert(pod).second) result.push_back({pod, reason});
  };
  for (const api::Pod* pod : surplus_of_finished(view.pods, kept)) {
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
