#include "policy/scheduling/score.h"

#include "api/node_affinity.h"

#include <algorithm>
#include <array>
#include <optional>

namespace spillway::scheduling {

namespace {

constexpr std::int64_t kScoreMax = 100;
constexpr std::int64_t kFull = 1'000'000;  // parts per million
// What a container without a request counts for, so that a heap of them does not look like an empty node.
constexpr std::int64_t kDefaultMilliCpu = 100;
constexpr std::int64_t kDefaultMemoryMilli = std::int64_t{200} * 1024 * 1024 * 1000;

std::int64_t milli_of(const api::ResourceList& list, std::string_view name) {
  const auto found = list.find(name);
  return found == list.end() ? 0 : found->second.milli_value();
}

/// Share of the resource in use once the pod is there, in parts per million; nullopt if the node has none.
std::optional<std::int64_t> used_share(const PendingPod& pod, const NodeLoad& load, std::string_view name,
                                       std::int64_t at_least) {
  const std::int64_t capacity = milli_of(load.node->status.allocatable, name);
  if (capacity <= 0) return std::nullopt;
  const std::int64_t wanted = std::max(milli_of(pod.requests, name), at_least);
  const double used = static_cast<double>(milli_of(load.requested, name)) + static_cast<double>(wanted);
  return std::min(kFull, static_cast<std::int64_t>(used * static_cast<double>(kFull) / static_cast<double>(capacity)));
}

std::int64_t count_soft_taints(const api::Pod& pod, const api::Node& node) {
  constexpr std::array<std::string_view, 1> kSoft{api::kPreferNoSchedule};
  return std::count_if(node.spec.taints.begin(), node.spec.taints.end(), [&](const api::Taint& taint) {
    return api::find_untolerated(std::span(&taint, 1), pod.spec.tolerations, kSoft) != nullptr;
  });
}

}  // namespace

Score score_node(const PendingPod& pod, const NodeLoad& load) {
  Score score;
  score.soft_taints = count_soft_taints(*pod.pod, *load.node);
  score.affinity = api::preferred_node_score(pod.preferred, load.node->metadata);
  const std::optional<std::int64_t> cpu = used_share(pod, load, "cpu", kDefaultMilliCpu);
  const std::optional<std::int64_t> memory = used_share(pod, load, "memory", kDefaultMemoryMilli);
  if (!cpu || !memory) return score;
  score.least_allocated = ((kFull - *cpu) + (kFull - *memory)) * kScoreMax / (2 * kFull);
  score.balanced = (kFull - std::max(*cpu - *memory, *memory - *cpu)) * kScoreMax / kFull;
  return score;
}

}  // namespace spillway::scheduling
