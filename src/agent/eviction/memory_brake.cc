#include "agent/eviction/memory_brake.h"

#include <algorithm>

namespace spillway::agent {
namespace {

constexpr Bytes kFallMin = mebibytes(256);  // per second
constexpr std::int64_t kSecondsAhead = 3;
constexpr Bytes kBeforeThreshold = mebibytes(16);

}  // namespace

std::optional<Bytes> brake_limit(const BrakeSituation& situation) {
  const std::int64_t near = kSecondsAhead * std::max(situation.fall_per_second, kFallMin).count();
  const Bytes let_go = Bytes{situation.is_set ? near + near / 2 : near};
  if (situation.headroom >= let_go) return std::nullopt;
  return situation.pods_usage + std::max(Bytes{}, situation.headroom - kBeforeThreshold);
}

}  // namespace spillway::agent
