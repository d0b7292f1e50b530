#include "agent/contract/blind_zone.h"

#include <algorithm>
#include <string>

namespace spillway::agent {
namespace {

constexpr std::int64_t kBlindZoneSmall = 55;  // MiB on 512 MiB
constexpr std::int64_t kBlindZoneLarge = 95;  // MiB from 1.5 GiB on

}  // namespace

Bytes oom_blind_zone(Bytes memory) {
  const std::int64_t above = std::max<std::int64_t>(0, memory.count() - mebibytes(512).count());
  const std::int64_t slope_mib = kBlindZoneLarge - kBlindZoneSmall;  // per GiB
  const std::int64_t zone = mebibytes(kBlindZoneSmall).count() + above / 1024 * slope_mib;
  return Bytes{std::min(zone, mebibytes(kBlindZoneLarge).count())};
}

std::vector<BlindThreshold> thresholds_in_blind_zone(std::span<const eviction::Threshold> thresholds, Bytes memory,
                                                     const EvictionOptions& options) {
  std::vector<BlindThreshold> blind;
  if (options.memory_watch.estimator == eviction::MemoryEstimator::kAvailable) return blind;
  const Bytes zone = std::max(options.blind_zone, options.blind_zone_ahead);
  for (const eviction::Threshold& each : thresholds) {
    if (each.signal != eviction::Signal::kMemoryAvailable || !each.is_hard()) continue;
    const auto amount = eviction::amount_of(each.value, memory.count());
    if (amount && amount->bytes() <= zone) blind.push_back({each.signal, amount->bytes(), zone});
  }
  return blind;
}

policy::Reason blind_zone_reason(const BlindThreshold& threshold) {
  return {policy::ReasonCode::kInBlindZone,
          {{"signal", std::string(to_string(threshold.signal))},
           {"threshold_bytes", threshold.threshold.count()},
           {"blind_zone_bytes", threshold.blind_zone.count()}}};
}

}  // namespace spillway::agent
