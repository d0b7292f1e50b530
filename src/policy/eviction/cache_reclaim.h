// Page cache that is reclaimed from pods before one of them is evicted (relief.h): the order to the machine, and its
// answer. Thread: any (plain values).
#pragma once

#include "base/bytes.h"

#include <cstdint>
#include <optional>
#include <string>

namespace spillway::eviction {

enum class Relief : std::uint8_t { kOff, kOn };

/// An order to reclaim page cache from the cgroup of a pod.
struct CacheReclaim {
  std::string uid;
  Bytes bytes;

  friend bool operator==(const CacheReclaim&, const CacheReclaim&) = default;
};

/// The result of one CacheReclaim.
struct ReliefOutcome {
  std::string uid;
  Bytes asked;
  Bytes freed;                     // by which the page cache of the cgroup has become less; 0 if it grew meanwhile
  std::optional<Bytes> refaulted;  // file pages read again since the cgroup was made, after the act; nullopt: unknown
  std::string problem = {};        // why nothing was reclaimed: "this kernel has no memory.reclaim"

  friend bool operator==(const ReliefOutcome&, const ReliefOutcome&) = default;
};

}  // namespace spillway::eviction
