#include "api/object/pod.h"

#include <algorithm>

namespace spillway::api {
namespace {

constexpr std::int32_t kCriticalPriorityMin = 2'000'000'000;

}  // namespace

bool is_sidecar(const Container& init_container) {
  return init_container.restart_policy == "Always";
}

bool has_restart_action(const Container& container, std::string_view action) {
  return std::ranges::find(container.restart_rules, action, &RestartRule::action) != container.restart_rules.end();
}

bool may_restart_all(const PodSpec& spec) {
  const auto has_rule = [](const Container& each) { return has_restart_action(each, kRestartAllContainers); };
  return std::ranges::any_of(spec.containers, has_rule) || std::ranges::any_of(spec.init_containers, has_rule);
}

bool is_terminal(const Pod& pod) {
  return pod.status.phase == "Succeeded" || pod.status.phase == "Failed";
}

std::int32_t priority_of(const Pod& pod) {
  return pod.spec.priority.value_or(0);
}

bool is_static(const Pod& pod) {
  const auto source = pod.metadata.annotations.find(kConfigSourceAnnotation);
  return source != pod.metadata.annotations.end() && source->second != "api";
}

bool is_mirror(const Pod& pod) {
  return pod.metadata.annotations.contains(kConfigMirrorAnnotation);
}

bool is_critical(const Pod& pod) {
  return is_static(pod) || is_mirror(pod) || priority_of(pod) >= kCriticalPriorityMin;
}

bool is_node_critical(const Pod& pod) {
  return is_critical(pod) && pod.spec.priority_class_name == "system-node-critical";
}

bool may_preempt(const Pod& preemptor, const Pod& victim) {
  if (is_critical(preemptor) && !is_critical(victim)) return true;
  return preemptor.spec.priority && victim.spec.priority && *preemptor.spec.priority > *victim.spec.priority;
}

const PodCondition* find_condition(const std::vector<PodCondition>& conditions, std::string_view type) {
  const auto found =
      std::find_if(conditions.begin(), conditions.end(), [type](const PodCondition& c) { return c.type == type; });
  return found != conditions.end() ? &*found : nullptr;
}

}  // namespace spillway::api
