// The page cache of simulated pods: it grows as a pod reads files, and the reclaimed part grows again if the pod reads
// the same files again. Thread: any (values).
#pragma once

#include "base/bytes.h"
#include "base/time.h"
#include "policy/eviction/cache_reclaim.h"
#include "sim/growth.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace spillway::sim {

class PageCache {
 public:
  enum class Reading : std::uint8_t { kOnce, kAgain };

  /// Grows to `target`, at once or by `rate_per_second`.
  void read(Bytes target, Bytes rate_per_second, Reading reading, Instant now) {
    refaulted_ = refaulted(now);
    reclaimed_ = {};
    reading_ = reading;
    held_.aim(target.count(), rate_per_second.count(), now);
  }

  Bytes at(Instant now) const { return Bytes{held_.at(now)}; }

  /// A quarter of the cache: the kernel keeps its two lists in proportion.
  Bytes inactive(Instant now) const { return Bytes{held_.at(now) / 4}; }

  /// Bytes that were reclaimed and read again so far.
  Bytes refaulted(Instant now) const { return refaulted_ + std::min(grown(now), reclaimed_); }

  bool is_growing(Instant now) const { return held_.at(now) < held_.to; }

  /// Takes at most `bytes`; returns the amount.
  Bytes reclaim(Bytes bytes, Instant now) {
    const Bytes taken = std::min(bytes, at(now));
    const Bytes again = std::min(grown(now), reclaimed_);
    refaulted_ += again;
    reclaimed_ -= again;
    if (reading_ == Reading::kAgain) reclaimed_ += taken;
    const std::int64_t to = reading_ == Reading::kAgain ? held_.to : held_.to - taken.count();
    held_ = {.before = (at(now) - taken).count(), .to = to, .per_second = held_.per_second, .since = now};
    return taken;
  }

 private:
  Bytes grown(Instant now) const { return Bytes{std::max<std::int64_t>(held_.at(now) - held_.before, 0)}; }

  Growth held_;
  Reading reading_ = Reading::kOnce;
  Bytes reclaimed_;  // and not read again yet
  Bytes refaulted_;  // until held_.since
};

/// The page caches of the pods of one machine, by uid.
class PageCaches {
 public:
  /// A pod's cache; an empty one if it has read nothing.
  PageCache of(const std::string& uid) const {
    const auto found = caches_.find(uid);
    return found == caches_.end() ? PageCache() : found->second;
  }

  PageCache& operator[](const std::string& uid) { return caches_[uid]; }

  void erase(const std::string& uid) { caches_.erase(uid); }

  Bytes total(Instant now) const;
  Bytes inactive(Instant now) const;
  bool any_grows(Instant now) const;
  eviction::ReliefOutcome reclaim(const eviction::CacheReclaim& order, Instant now);
  /// Takes `excess` in all, from the largest caches first: the kernel does so before it kills.
  void give_up(Bytes excess, Instant now);

 private:
  std::map<std::string, PageCache> caches_;
};

}  // namespace spillway::sim
