#include "policy/scheduling/score.h"

#include "api/object/node_affinity.h"
#include "api/object/taint.h"

#include <algorithm>
#include <array>
#include <span>

namespace spillway::scheduling {

namespace {

constexpr std::int64_t kScoreMax = 100;
constexpr std::int64_t kTaintWeight = 3;
constexpr std::int64_t kAffinityWeight = 2;
constexpr std::int64_t kMillion = 1'000'000;

__extension__ using Wide = __int128;

/// part · factor / whole without overflow; whole > 0.
std::int64_t proportion(std::int64_t part, std::int64_t whole, std::int64_t factor) {
  return static_cast<std::int64_t>(Wide{part} * factor / whole);
}

/// Free share of one resource once the pod is there, 0..100.
std::int64_t free_share(std::int64_t used, std::int64_t capacity) {
  if (capacity <= 0 || used > capacity) return 0;
  return proportion(capacity - used, capacity, kScoreMax);
}

/// Used share in parts per million, at most all.
std::int64_t used_share_ppm(std::int64_t used, std::int64_t capacity) {
  return std::min(proportion(used, capacity, kMillion), kMillion);
}

std::int64_t count_soft_taints(const api::Pod& pod, const api::Node& node) {
  constexpr std::array<std::string_view, 1> kSoft{api::kPreferNoSchedule};
  return std::ranges::count_if(node.spec.taints, [&](const api::Taint& taint) {
    return api::find_untolerated(std::span(&taint, 1), pod.spec.tolerations, kSoft) != nullptr;
  });
}

/// Images below 23 MiB in all count nothing, above 1000 MiB per container everything.
std::int64_t image_locality_of(const PendingPod& pod, const policy::NodeLoad& load) {
  constexpr std::int64_t kLeastBytes = std::int64_t{23} * 1024 * 1024;
  constexpr std::int64_t kMostBytesPerContainer = std::int64_t{1000} * 1024 * 1024;
  if (pod.images.empty() || load.image_bytes.empty()) return 0;
  std::int64_t bytes = 0;
  for (const PendingImage& image : pod.images) {
    const auto held = load.image_bytes.find(image.name);
    if (held != load.image_bytes.end()) bytes += proportion(image.nodes_ppm, kMillion, held->second);
  }
  const std::int64_t most = kMostBytesPerContainer * static_cast<std::int64_t>(pod.images.size());
  return proportion(std::clamp(bytes, kLeastBytes, most) - kLeastBytes, most - kLeastBytes, kScoreMax);
}

}  // namespace

Score score_node(const PendingPod& pod, const policy::NodeLoad& load) {
  Score score;
  score.soft_taints = count_soft_taints(*pod.pod, *load.node);
  score.affinity = api::preferred_node_score(pod.preferred, load.node->metadata);
  score.image_locality = image_locality_of(pod, load);
  const policy::Amounts& capacity = load.allocatable;
  const std::int64_t cpu = load.scored_milli_cpu + pod.load.scored_milli_cpu;
  const std::int64_t memory = load.scored_memory_bytes + pod.load.scored_memory_bytes;
  score.least_allocated = (free_share(cpu, capacity.milli_cpu) + free_share(memory, capacity.memory_bytes)) / 2;
  if (capacity.milli_cpu <= 0 || capacity.memory_bytes <= 0) return score;
  const std::int64_t cpu_share =
      used_share_ppm(load.requested.milli_cpu + pod.load.requested.milli_cpu, capacity.milli_cpu);
  const std::int64_t memory_share =
      used_share_ppm(load.requested.memory_bytes + pod.load.requested.memory_bytes, capacity.memory_bytes);
  // The deviation of two shares from their mean is half their distance.
  const std::int64_t deviation = std::max(cpu_share - memory_share, memory_share - cpu_share) / 2;
  score.balanced = (kMillion - deviation) * kScoreMax / kMillion;
  return score;
}

void ScoreBounds::include(const Score& candidate) {
  soft_taints = std::max(soft_taints, candidate.soft_taints);
  affinity = std::max(affinity, candidate.affinity);
}

std::int64_t total_score(const Score& score, const ScoreBounds& among) {
  const std::int64_t taints =
      among.soft_taints == 0 ? kScoreMax : kScoreMax - score.soft_taints * kScoreMax / among.soft_taints;
  const std::int64_t affinity = among.affinity <= 0 ? 0 : proportion(score.affinity, among.affinity, kScoreMax);
  return score.least_allocated + score.balanced + score.image_locality + kTaintWeight * taints +
         kAffinityWeight * affinity;
}

}  // namespace spillway::scheduling
