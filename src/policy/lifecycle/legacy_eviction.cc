#include "policy/lifecycle/legacy_eviction.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace spillway::lifecycle {
namespace {

bool is_daemon_pod(const api::Pod& pod, std::span<const api::DaemonSet* const> daemon_sets) {
  if (pod.metadata.labels.empty()) return false;
  return std::ranges::any_of(daemon_sets, [&](const api::DaemonSet* set) {
    return set->metadata.ns == pod.metadata.ns && !set->selector.is_everything() &&
           set->selector.matches(pod.metadata.labels);
  });
}

struct Version {
  std::array<int, 3> numbers{};
  bool pre_release = false;
};

std::optional<Version> parse_version(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  Version version;
  for (std::size_t i = 0; i < version.numbers.size(); ++i) {
    if (i > 0) {
      if (!text.starts_with('.')) return std::nullopt;
      text.remove_prefix(1);
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version.numbers[i]);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || version.numbers[i] < 0 || (digits > 1 && text.front() == '0')) return std::nullopt;
    text.remove_prefix(digits);
  }
  if (!text.empty() && text.front() != '-' && text.front() != '+') return std::nullopt;
  version.pre_release = text.starts_with('-');
  return version;
}

}  // namespace

PodEvictionStep plan_pod_eviction(const api::Pod& pod, std::string_view node,
                                  std::span<const api::DaemonSet* const> daemon_sets) {
  if (pod.spec.node_name != node) return {};
  const bool terminating = pod.metadata.deletion_grace_period_seconds.has_value();
  const bool deleted = !terminating && !is_daemon_pod(pod, daemon_sets);
  return {.set_node_lost = pod.status.reason != "NodeLost", .delete_pod = deleted, .remains = terminating || deleted};
}

std::string node_lost_message(std::string_view node, std::string_view pod) {
  return fmt::format("Node {} which was running pod {} is unresponsive", node, pod);
}

PodReadyStep plan_pod_not_ready(const api::Pod& pod, bool skip_false) {
  const api::PodCondition* ready = api::find_condition(pod.status.conditions, "Ready");
  if (ready == nullptr) return PodReadyStep::kSkip;
  return skip_false && ready->status == "False" ? PodReadyStep::kSkip : PodReadyStep::kWrite;
}

bool is_outdated_kubelet(std::string_view version, const std::array<int, 3>& minimum) {
  const auto parsed = parse_version(version);
  if (!parsed) return true;
  if (parsed->numbers != minimum) return parsed->numbers < minimum;
  return parsed->pre_release;
}

}  // namespace spillway::lifecycle
