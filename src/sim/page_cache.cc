#include "sim/page_cache.h"

namespace spillway::sim {

Bytes PageCaches::total(Instant now) const {
  Bytes sum;
  for (const auto& [uid, cache] : caches_) sum += cache.at(now);
  return sum;
}

Bytes PageCaches::inactive(Instant now) const {
  Bytes sum;
  for (const auto& [uid, cache] : caches_) sum += cache.inactive(now);
  return sum;
}

bool PageCaches::any_grows(Instant now) const {
  return std::ranges::any_of(caches_, [now](const auto& entry) { return entry.second.is_growing(now); });
}

eviction::ReliefOutcome PageCaches::reclaim(const eviction::CacheReclaim& order, Instant now) {
  eviction::ReliefOutcome outcome{.uid = order.uid, .asked = order.bytes, .freed = {}, .refaulted = {}};
  const auto found = caches_.find(order.uid);
  if (found == caches_.end()) return outcome;
  outcome.freed = found->second.reclaim(order.bytes, now);
  outcome.refaulted = found->second.refaulted(now);
  return outcome;
}

void PageCaches::give_up(Bytes excess, Instant now) {
  while (excess > Bytes{} && !caches_.empty()) {
    const auto largest =
        std::ranges::max_element(caches_, {}, [now](const auto& entry) { return entry.second.at(now); });
    if (largest->second.at(now) == Bytes{}) return;
    excess -= largest->second.reclaim(excess, now);
  }
}

}  // namespace spillway::sim
