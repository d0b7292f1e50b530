#include "policy/containers/restart_rules.h"

#include <algorithm>

namespace spillway::containers {
namespace {

constexpr std::string_view kRestart = "Restart";

bool matches(const api::ExitCodeRequirement& requirement, std::int32_t exit_code) {
  const bool listed = std::ranges::find(requirement.values, exit_code) != requirement.values.end();
  if (requirement.op == "In") return listed;
  return requirement.op == "NotIn" && !listed;
}

}  // namespace

std::string_view restart_policy_of(const api::PodSpec& spec, const api::Container& container) {
  if (!container.restart_policy.empty()) return container.restart_policy;
  return spec.restart_policy.empty() ? std::string_view("Always") : std::string_view(spec.restart_policy);
}

const api::RestartRule* matching_rule(const api::Container& container, std::int32_t exit_code) {
  const auto found = std::ranges::find_if(container.restart_rules, [exit_code](const api::RestartRule& rule) {
    return rule.exit_codes && matches(*rule.exit_codes, exit_code);
  });
  return found == container.restart_rules.end() ? nullptr : &*found;
}

bool restarts_after(const api::PodSpec& spec, const api::Container& container, std::int32_t exit_code) {
  if (!container.restart_policy.empty() && matching_rule(container, exit_code) != nullptr) return true;
  const std::string_view policy = restart_policy_of(spec, container);
  return policy == "Always" || (policy == "OnFailure" && exit_code != 0);
}

bool may_restart(const api::PodSpec& spec, const api::Container& container) {
  return restart_policy_of(spec, container) != "Never" || api::has_restart_action(container, kRestart);
}

bool restarts_all_after(const api::Container& container, std::int32_t exit_code) {
  if (container.restart_policy.empty()) return false;
  const api::RestartRule* rule = matching_rule(container, exit_code);
  return rule != nullptr && rule->action == api::kRestartAllContainers;
}

}  // namespace spillway::containers
