#include "policy/scheduling/score.h"

#include "api/object/node_affinity.h"
#include "api/object/taint.h"
#include "api/text/resource_names.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

namespace spillway::scheduling {

namespace {

constexpr std::int64_t kScoreMax = 100;

__extension__ using Wide = __int128;

/// part · factor / whole without overflow; whole > 0.
std::int64_t proportion(std::int64_t part, std::int64_t whole, std::int64_t factor) {
  return static_cast<std::int64_t>(Wide{part} * factor / whole);
}

/// Requests for a resource with the pod placed, and the node's capacity; {0, 0}: the resource does not count.
struct Share {
  std::int64_t used = 0;
  std::int64_t capacity = 0;
};

std::int64_t scalar_of(const policy::Amounts& amounts, std::string_view name) {
  const auto found = amounts.scalars.find(name);
  return found == amounts.scalars.end() ? 0 : found->second;
}

/// For scores of room, cpu and memory count as if every container requested some.
Share share_of(std::string_view resource, const PendingPod& pod, const policy::NodeLoad& load) {
  const policy::Amounts& all = load.allocatable;
  if (resource == "cpu") return {load.scored_milli_cpu + pod.load.scored_milli_cpu, all.milli_cpu};
  if (resource == "memory") return {load.scored_memory_bytes + pod.load.scored_memory_bytes, all.memory_bytes};
  const policy::Amounts& wanted = pod.load.requested;
  if (resource == "ephemeral-storage") {
    return {load.requested.ephemeral_storage_bytes + wanted.ephemeral_storage_bytes, all.ephemeral_storage_bytes};
  }
  const std::int64_t asked = scalar_of(wanted, resource);
  if (asked == 0) return {};  // upstream skips resources that the pod does not request
  return {scalar_of(load.requested, resource) + asked, scalar_of(all, resource)};
}

std::int64_t least_allocated(const Share& share) {
  return share.used > share.capacity ? 0 : proportion(share.capacity - share.used, share.capacity, kScoreMax);
}

std::int64_t most_allocated(const Share& share) {
  return proportion(std::min(share.used, share.capacity), share.capacity, kScoreMax);
}

/// The line through the points, ten times their scores.
std::int64_t on_shape(const std::vector<ScoringStrategy::Point>& shape, std::int64_t utilization) {
  constexpr std::int64_t kScale = 10;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const ScoringStrategy::Point& point = shape[i];
    if (utilization > point.utilization) continue;
    if (i == 0) return point.score * kScale;
    const ScoringStrategy::Point& before = shape[i - 1];
    return before.score * kScale + (point.score - before.score) * kScale * (utilization - before.utilization) /
                                       (point.utilization - before.utilization);
  }
  return shape.empty() ? 0 : shape.back().score * kScale;
}

std::int64_t by_capacity_ratio(const std::vector<ScoringStrategy::Point>& shape, const Share& share) {
  constexpr std::int64_t kAll = 100;
  return on_shape(shape, share.used > share.capacity ? kAll : proportion(share.used, share.capacity, kAll));
}

std::int64_t score_of_resources(const PendingPod& pod, const policy::NodeLoad& load, const ScoringStrategy& strategy) {
  using Type = ScoringStrategy::Type;
  std::int64_t sum = 0;
  std::int64_t weights = 0;
  for (const ScoringStrategy::Resource& resource : strategy.resources) {
    const Share share = share_of(resource.name, pod, load);
    if (share.capacity <= 0) continue;
    std::int64_t score = 0;
    if (strategy.type == Type::kRequestedToCapacityRatio) {
      score = by_capacity_ratio(strategy.shape, share);
      if (score == 0) continue;  // upstream ignores the weight of such a resource
    } else {
      score = strategy.type == Type::kMostAllocated ? most_allocated(share) : least_allocated(share);
    }
    sum += score * resource.weight;
    weights += resource.weight;
  }
  if (weights == 0) return 0;
  if (strategy.type != Type::kRequestedToCapacityRatio) return sum / weights;
  return std::llround(static_cast<double>(sum) / static_cast<double>(weights));
}

/// Deviation of the shares: half the distance of two, the standard deviation of more, zero for less than two.
double deviation_of(const std::vector<double>& shares) {
  if (shares.size() == 2) return std::abs((shares[0] - shares[1]) / 2);
  if (shares.size() < 2) return 0;
  const auto count = static_cast<double>(shares.size());
  double sum = 0;
  for (const double share : shares) sum += share;
  const double mean = sum / count;
  double squares = 0;
  for (const double share : shares) squares += (share - mean) * (share - mean);
  return std::sqrt(squares / count);
}

/// The amount of a resource that the pod requests, by its actual requests.
std::int64_t requested_of(std::string_view resource, const policy::Amounts& amounts) {
  if (resource == "cpu") return amounts.milli_cpu;
  if (resource == "memory") return amounts.memory_bytes;
  if (resource == "ephemeral-storage") return amounts.ephemeral_storage_bytes;
  return scalar_of(amounts, resource);
}

/// 50..100: how alike the used shares of the resources are, with the pod or without it. By the actual requests;
/// extended resources count only if the pod requests them. In doubles, as upstream.
std::int64_t balance_of(const PendingPod& pod, const policy::NodeLoad& load, bool with_pod) {
  std::vector<double> shares;
  for (const std::string& resource : pod.profile->balanced) {
    const bool is_basic = resource == "cpu" || resource == "memory" || resource == "ephemeral-storage";
    const std::int64_t wanted = requested_of(resource, pod.load.requested);
    const std::int64_t capacity = requested_of(resource, load.allocatable);
    if (capacity <= 0 || (!is_basic && wanted == 0)) continue;
    const std::int64_t used = requested_of(resource, load.requested) + (with_pod ? wanted : 0);
    shares.push_back(std::min(static_cast<double>(used) / static_cast<double>(capacity), 1.0));
  }
  return static_cast<std::int64_t>((1 - deviation_of(shares)) * static_cast<double>(kScoreMax));
}

/// The change of the node's balance by the pod: 75 for none.
std::int64_t score_of_balance(const PendingPod& pod, const policy::NodeLoad& load) {
  if (!asks_for_balance(pod)) return 0;
  const std::int64_t change = balance_of(pod, load, true) - balance_of(pod, load, false);
  return kScoreMax / 2 + (kScoreMax / 2 + change) / 2;
}

std::int64_t count_soft_taints(const api::Pod& pod, const api::Node& node) {
  constexpr std::array<std::string_view, 1> kSoft{api::kPreferNoSchedule};
  return std::ranges::count_if(node.spec.taints, [&](const api::Taint& taint) {
    return api::find_untolerated(std::span(&taint, 1), pod.spec.tolerations, kSoft) != nullptr;
  });
}

/// Images below 23 MiB in all count nothing, above 1000 MiB per container everything. Those of volumes count as well.
std::int64_t image_locality_of(const PendingPod& pod, const policy::NodeLoad& load) {
  constexpr std::int64_t kLeastBytes = std::int64_t{23} * 1024 * 1024;
  constexpr std::int64_t kMostBytesPerContainer = std::int64_t{1000} * 1024 * 1024;
  if (pod.images.empty() || load.image_bytes.empty()) return 0;
  std::int64_t bytes = 0;
  for (const PendingImage& image : pod.images) {
    const auto held = load.image_bytes.find(image.name);
    if (held == load.image_bytes.end()) continue;
    bytes += static_cast<std::int64_t>(static_cast<double>(held->second) * image.node_share);
  }
  const auto containers = std::ranges::count(pod.images, false, &PendingImage::of_volume);
  const std::int64_t most = kMostBytesPerContainer * containers;
  return proportion(std::clamp(bytes, kLeastBytes, most) - kLeastBytes, most - kLeastBytes, kScoreMax);
}

}  // namespace

bool asks_for_balance(const PendingPod& pod) {
  return std::ranges::any_of(pod.profile->balanced, [&pod](const std::string& resource) {
    return requested_of(resource, pod.load.requested) != 0;
  });
}

Score score_node(const PendingPod& pod, const policy::NodeLoad& load) {
  Score score;
  score.soft_taints = count_soft_taints(*pod.pod, *load.node);
  score.affinity = api::preferred_node_score(pod.preferred, load.node->metadata);
  score.image_locality = image_locality_of(pod, load);
  score.resources = score_of_resources(pod, load, pod.profile->fit);
  score.balanced = score_of_balance(pod, load);
  return score;
}

void ScoreBounds::include(const Score& candidate) {
  soft_taints = std::max(soft_taints, candidate.soft_taints);
  affinity = std::max(affinity, candidate.affinity);
  if (const auto raw = candidate.inter_pod) {
    inter_pod_most = inter_pod_least ? std::max(inter_pod_most, *raw) : *raw;
    inter_pod_least = std::min(inter_pod_least.value_or(*raw), *raw);
  }
  if (const auto raw = candidate.spread) {
    spread_most = spread_least ? std::max(spread_most, *raw) : *raw;
    spread_least = std::min(spread_least.value_or(*raw), *raw);
  }
}

namespace {

std::int64_t weigh_inter_pod(const Score& score, const ScoreBounds& among, std::int64_t weight) {
  if (!score.inter_pod || !among.inter_pod_least || among.inter_pod_most <= *among.inter_pod_least) return 0;
  // Computed in doubles, and cut off: 29 of 100 are 28 points.
  const auto above = static_cast<double>(*score.inter_pod - *among.inter_pod_least);
  const auto range = static_cast<double>(among.inter_pod_most - *among.inter_pod_least);
  return weight * static_cast<std::int64_t>(static_cast<double>(kScoreMax) * (above / range));
}

std::int64_t weigh_spread(const Score& score, const ScoreBounds& among, std::int64_t weight) {
  if (!score.spread || !among.spread_least) return 0;
  if (among.spread_most == 0) return weight * kScoreMax;
  return weight * (kScoreMax * (among.spread_most + *among.spread_least - *score.spread) / among.spread_most);
}

}  // namespace

WeighedScore weigh(const Score& score, const ScoreBounds& among, const ScoreWeights& weights) {
  WeighedScore parts{weights.resources * score.resources, weights.balanced * score.balanced,
                     weights.image_locality * score.image_locality};
  parts.taints = weights.taints *
                 (among.soft_taints == 0 ? kScoreMax : kScoreMax - score.soft_taints * kScoreMax / among.soft_taints);
  if (among.affinity > 0) parts.affinity = weights.affinity * proportion(score.affinity, among.affinity, kScoreMax);
  parts.inter_pod = weigh_inter_pod(score, among, weights.inter_pod);
  parts.spread = weigh_spread(score, among, weights.spread);
  return parts;
}

std::int64_t related_score(const Score& score, const ScoreBounds& among, const ScoreWeights& weights) {
  return weigh_inter_pod(score, among, weights.inter_pod) + weigh_spread(score, among, weights.spread);
}

std::int64_t total_score(const Score& score, const ScoreBounds& among, const ScoreWeights& weights) {
  return weigh(score, among, weights).total();
}

}  // namespace spillway::scheduling
