#include "policy/workloads/job_failure_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace spillway::workloads {

namespace {

bool fits(const api::ExitCodesPattern& pattern, const api::ContainerStatus& container) {
  if (!container.state.terminated || container.state.terminated->exit_code == 0) return false;
  if (pattern.container_name && *pattern.container_name != container.name) return false;
  const bool listed = std::ranges::find(pattern.values, container.state.terminated->exit_code) != pattern.values.end();
  if (pattern.op == "In") return listed;
  return pattern.op == "NotIn" && !listed;
}

const api::ContainerStatus* fitting(const api::ExitCodesPattern& pattern, const api::PodStatus& status) {
  for (const auto* containers : {&status.container_statuses, &status.init_container_statuses}) {
    for (const api::ContainerStatus& container : *containers) {
      if (fits(pattern, container)) return &container;
    }
  }
  return nullptr;
}

/// The match of the rule, in the words of the message of a Job that fails for it; nullopt: no match.
std::optional<std::string> fit_text(const api::PodFailureRule& rule, std::size_t position, const api::Pod& pod) {
  if (rule.exit_codes) {
    const api::ContainerStatus* container = fitting(*rule.exit_codes, pod.status);
    if (container == nullptr) return std::nullopt;
    return fmt::format("Container {} for pod {} failed with exit code {} matching {} rule at index {}", container->name,
                       pod.key().text(), container->state.terminated->exit_code, rule.action, position);
  }
  for (const api::PodCondition& condition : pod.status.conditions) {
    const bool wanted = std::ranges::any_of(rule.conditions, [&condition](const api::PodConditionPattern& pattern) {
      return pattern.type == condition.type && pattern.status == condition.status;
    });
    if (!wanted) continue;
    return fmt::format("Pod {} has condition {} matching {} rule at index {}", pod.key().text(), condition.type,
                       rule.action, position);
  }
  return std::nullopt;
}

bool is_met(const api::SuccessRule& rule, std::int32_t completions, const JobIndexes& succeeded) {
  if (!rule.succeeded_indexes) return rule.succeeded_count && succeeded.total() >= *rule.succeeded_count;
  const JobIndexes required = JobIndexes::parse(*rule.succeeded_indexes, completions);
  const std::int64_t reached = required.count_in(succeeded);
  return reached == required.total() || (rule.succeeded_count && reached >= *rule.succeeded_count);
}

}  // namespace

PodFailureMatch match_pod_failure(const std::optional<api::PodFailurePolicy>& policy, const api::Pod& pod) {
  if (!policy) return {};
  for (std::size_t i = 0; i < policy->rules.size(); ++i) {
    const api::PodFailureRule& rule = policy->rules[i];
    std::optional<std::string> text = fit_text(rule, i, pod);
    if (!text) continue;
    if (rule.action != kFailJob) text.reset();
    return {rule.action != kIgnore, rule.action, std::move(text)};
  }
  return {};
}

std::optional<std::size_t> fulfilled_success_rule(const std::optional<api::SuccessPolicy>& policy,
                                                  std::int32_t completions, const JobIndexes& succeeded) {
  if (!policy || succeeded.empty()) return std::nullopt;
  for (std::size_t i = 0; i < policy->rules.size(); ++i) {
    if (is_met(policy->rules[i], completions, succeeded)) return i;
  }
  return std::nullopt;
}

}  // namespace spillway::workloads
