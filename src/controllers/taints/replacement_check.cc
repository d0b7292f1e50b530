#include "controllers/taints/replacement_check.h"

#include "api/object/kind_id.h"
#include "policy/lifecycle/node_health.h"
#include "policy/scheduling/place.h"

#include <utility>

namespace spillway::controllers {

namespace {

constexpr Duration kLoadsAgeMax = seconds(1);

bool is_replaced_elsewhere(const api::Pod& pod) {
  const api::OwnerReference* owner = api::controller_of(pod.metadata);
  return owner != nullptr && api::kind_of(*owner) != api::KindId{"apps", "DaemonSet"};
}

}  // namespace

ReplacementCheck::ReplacementCheck(Shared shared, std::function<std::vector<PodPtr>(Now now)> promised)
    : shared_(shared),
      promised_(std::move(promised)),
      namespaces_(shared.client, client::object_path("v1", "namespaces", {})) {}

void ReplacementCheck::count_anew(Now now) {
  counted_ = now.mono;
  loads_.clear();
  around_ = {};
  for (const auto& [name, ns] : namespaces_.cache().all()) around_.set_namespace(name, ns->metadata.labels);
  for (const auto& [name, node] : shared_.nodes.cache().all()) {
    if (lifecycle::readiness_of(*node) == lifecycle::Readiness::kTrue) loads_.emplace(name, policy::NodeLoad(node));
  }
  for (const auto& [key, pod] : shared_.pods.cache().all()) {
    const auto load = loads_.find(pod->spec.node_name);
    if (load == loads_.end() || api::is_terminal(*pod)) continue;
    load->second.add(*pod);
    around_.add(load->first, *pod);
  }
  if (!promised_) return;
  for (const PodPtr& pod : promised_(now)) take_room(*pod);
}

std::optional<policy::Reason> ReplacementCheck::find_obstacle(const api::Pod& pod, Now now) {
  if (!is_replaced_elsewhere(pod)) return std::nullopt;
  if (!counted_ || now.mono - *counted_ >= kLoadsAgeMax) count_anew(now);
  return take_room(pod);
}

std::optional<policy::Reason> ReplacementCheck::take_room(const api::Pod& pod) {
  api::Pod replacement = pod;
  replacement.spec.node_name.clear();
  auto own = loads_.extract(pod.spec.node_name);
  const scheduling::Placement placement =
      scheduling::place_pod(replacement, loads_, scheduling::default_profile(), {}, around_);
  if (!own.empty()) loads_.insert(std::move(own));
  if (!placement.node) return policy::Reason{policy::ReasonCode::kNoReplacement, {{"message", placement.message}}};
  loads_.at(*placement.node).add(replacement);
  around_.add(*placement.node, replacement);
  return std::nullopt;
}

}  // namespace spillway::controllers
