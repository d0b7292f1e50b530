#include "agent/config/resource_managers.h"

#include "agent/config/kubelet_config.h"
#include "api/text/duration.h"
#include "base/edit_distance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace spillway::agent {
namespace {

using api::Json;

Outcome check_word(std::string_view key, std::string_view word, const std::vector<std::string>& known) {
  if (std::ranges::find(known, word) != known.end()) return {};
  const std::string near = nearest_word(word, known).found();
  return invalid(
      key, "unknown: \"{}\"; {}", word,
      near.empty() ? fmt::format("expected one of {}", fmt::join(known, ", ")) : fmt::format("did you mean {}?", near));
}

Result<std::map<std::string, std::string, std::less<>>> words_at(const Json& effective, std::string_view key,
                                                                 const std::vector<std::string>& known) {
  std::map<std::string, std::string, std::less<>> words;
  const Json* found = effective.find(key);
  if (found == nullptr || found->if_object() == nullptr) return words;
  for (const auto& [name, value] : *found->if_object()) {
    SPILLWAY_TRY_VOID(check_word(key, name, known));
    words.emplace(name, *value.if_string());
  }
  return words;
}

Result<std::map<int, admission::NumaMemory>> reserved_memory_of(const Json& effective) {
  constexpr std::string_view kKey = "reservedMemory";
  std::map<int, admission::NumaMemory> reserved;
  const Json* list = effective.find(kKey);
  if (list == nullptr) return reserved;
  for (const Json& each : *list->if_array()) {
    const Json* node = each.find("numaNode");
    const Json* limits = each.find("limits");
    const auto number = node == nullptr ? std::nullopt : node->if_int64();
    if (!number || *number < 0 || *number >= 64 || limits == nullptr || limits->if_object() == nullptr) {
      return invalid(kKey, "expected numaNode and limits, got {}", api::to_text(each));
    }
    admission::NumaMemory& amounts = reserved[static_cast<int>(*number)];
    for (const auto& [resource, amount] : *limits->if_object()) {
      const auto quantity = amount.if_string() == nullptr ? Result<api::Quantity>(invalid({}, "no text"))
                                                          : api::parse_quantity(*amount.if_string());
      if (!quantity || quantity->value() <= 0) {
        return invalid(kKey, "{} of NUMA node {}: expected a quantity above zero, got {}", resource, *number,
                       api::to_text(amount));
      }
      if (!amounts.emplace(resource, quantity->value()).second) {
        return invalid(kKey, "{} of NUMA node {} is given twice", resource, *number);
      }
    }
  }
  return reserved;
}

Duration period_at(const Json& effective, std::string_view key) {
  return api::parse_duration(effective.string_at({key})).value_or(Duration{});
}

std::int64_t whole_seconds(Duration duration) {
  return std::chrono::duration_cast<seconds>(duration).count();
}

Result<PriorityGrace> priority_grace_of(const Json& entry) {
  const Json* priority = entry.find("priority");
  const Json* grace = entry.find("shutdownGracePeriodSeconds");
  const auto level = priority == nullptr ? std::nullopt : priority->if_int64();
  const auto period = grace == nullptr ? std::nullopt : grace->if_int64();
  if (!level || !period || *period < 0 || *level > std::numeric_limits<std::int32_t>::max() ||
      *level < std::numeric_limits<std::int32_t>::min()) {
    return invalid("shutdownGracePeriodByPodPriority", "expected priority and shutdownGracePeriodSeconds, got {}",
                   api::to_text(entry));
  }
  return PriorityGrace{static_cast<std::int32_t>(*level), *period};
}

}  // namespace

Result<ManagerOptions> managers_of(const Json& effective) {
  ManagerOptions options;
  const auto text = [&](std::string_view key) { return std::string(effective.string_at({key})); };
  options.topology.policy = text("topologyManagerPolicy");
  options.topology.scope = text("topologyManagerScope");
  options.cpus.policy = text("cpuManagerPolicy");
  options.memory.policy = text("memoryManagerPolicy");
  SPILLWAY_TRY_VOID(check_word("topologyManagerPolicy", options.topology.policy, admission::topology_policy_names()));
  SPILLWAY_TRY_VOID(check_word("topologyManagerScope", options.topology.scope, admission::topology_scope_names()));
  SPILLWAY_TRY_VOID(check_word("cpuManagerPolicy", options.cpus.policy, {"none", "static"}));
  SPILLWAY_TRY_VOID(check_word("memoryManagerPolicy", options.memory.policy, {"None", "Static"}));
  SPILLWAY_TRY(topology_options,
               words_at(effective, "topologyManagerPolicyOptions", admission::topology_option_names()));
  SPILLWAY_TRY(cpu_options, words_at(effective, "cpuManagerPolicyOptions", admission::cpu_option_names()));
  options.topology.policy_options = std::move(topology_options);
  options.cpus.policy_options = std::move(cpu_options);
  auto reserved = admission::CpuSet::parse(text("reservedSystemCPUs"));
  if (!reserved) return invalid("reservedSystemCPUs", "{}", reserved.error().message);
  options.cpus.reserved = *std::move(reserved);
  SPILLWAY_TRY(memory, reserved_memory_of(effective));
  options.memory.reserved = std::move(memory);
  return options;
}

Result<ShutdownSettings> shutdown_of(const Json& effective) {
  const Duration whole = period_at(effective, "shutdownGracePeriod");
  const Duration critical = period_at(effective, "shutdownGracePeriodCriticalPods");
  for (const auto& [key, period] :
       {std::pair("shutdownGracePeriod", whole), std::pair("shutdownGracePeriodCriticalPods", critical)}) {
    if (period < Duration{} || (period > Duration{} && period < seconds(1))) {
      return invalid(key, "must be either zero or at least 1 sec, got {}", api::format_duration(period));
    }
  }
  if (critical > whole) {
    return invalid("shutdownGracePeriodCriticalPods", "{} must be <= shutdownGracePeriod {}",
                   api::format_duration(critical), api::format_duration(whole));
  }
  ShutdownSettings settings{
      .grace_seconds = whole_seconds(whole), .critical_grace_seconds = whole_seconds(critical), .by_priority = {}};
  const Json* list = effective.find("shutdownGracePeriodByPodPriority");
  if (list == nullptr) return settings;
  for (const Json& each : *list->if_array()) {
    SPILLWAY_TRY(group, priority_grace_of(each));
    settings.by_priority.push_back(group);
  }
  if (!settings.by_priority.empty() && (settings.grace_seconds > 0 || settings.critical_grace_seconds > 0)) {
    return invalid("shutdownGracePeriodByPodPriority", "cannot be given together with shutdownGracePeriod");
  }
  return settings;
}

}  // namespace spillway::agent
