#include "policy/eviction/reaction.h"

#include "api/object/pod_requests.h"

namespace spillway::eviction {
namespace {

/// The keys of UsageRank, top to bottom.
bool goes_before(const MemoryStanding& a, const MemoryStanding& b) noexcept {
  if (a.measured != b.measured) return !a.measured;
  if (a.measured) {
    const bool a_exceeds = a.working_set_bytes > a.request_bytes;
    const bool b_exceeds = b.working_set_bytes > b.request_bytes;
    if (a_exceeds != b_exceeds) return a_exceeds;
  }
  if (a.priority != b.priority) return a.priority < b.priority;
  return a.measured && a.working_set_bytes - a.request_bytes > b.working_set_bytes - b.request_bytes;
}

}  // namespace

MemoryStanding memory_standing_of(const api::Pod& pod) {
  const api::Quantity request = api::agent_request(pod.spec, "memory");
  MemoryStanding known;
  known.spared = api::is_critical(pod);
  known.priority = api::priority_of(pod);
  known.request_bytes = request.value();  // rounded up
  if (api::Quantity::of_units(known.request_bytes) > request) --known.request_bytes;
  return known;
}

std::optional<std::size_t> first_for_memory(std::span<const MemoryStanding> pods) noexcept {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (pods[i].spared) continue;
    if (!first || goes_before(pods[i], pods[*first])) first = i;
  }
  return first;
}

std::optional<std::int64_t> crossed_below(const Threshold& threshold, std::int64_t capacity, Reclaim reclaim) {
  std::optional<api::Quantity> limit = amount_of(threshold.value, capacity);
  if (!limit) return std::nullopt;
  if (reclaim == Reclaim::kWithMinimum && threshold.min_reclaim) {
    const std::optional<api::Quantity> more = amount_of(*threshold.min_reclaim, capacity);
    if (!more) return std::nullopt;
    *limit += *more;
  }
  return limit->value();
}

}  // namespace spillway::eviction
