#include "agent/eviction/memory_brake.h"

#include <algorithm>

namespace spillway::agent {
namespace {

constexpr Bytes kFallMin = mebibytes(256);  // per second
constexpr std::int64_t kSecondsAhead = 3;
constexpr Bytes kBeforeThreshold = mebibytes(16);

}  // namespace

std::optional<Bytes> brake_limit(const BrakeSituation& situation) {
  if (situation.victim == BrakeVictim::kNobody) return std::nullopt;
  const std::int64_t near = kSecondsAhead * std::max(situation.fall_per_second, kFallMin).count();
  const Bytes release_below = Bytes{situation.limit ? near + near / 2 : near};
  if (situation.headroom >= release_below) return std::nullopt;
  const Bytes room = situation.headroom - kBeforeThreshold;
  if (room < Bytes{0}) return situation.limit.value_or(situation.pods_usage);
  return situation.pods_usage + room;
}

}  // namespace spillway::agent
