// The brake: how much all pods together may use before the kernel slows them down (memory.high), so that a pod that
// fills memory is met by an eviction and not by the OOM killer. Opt-in: page cache counts as used, so a pod that only
// streams files is slowed as well, and everybody is, not the guilty one alone.
// Thread: any (pure). Source: spec "Wake-up sources", 3 and 6.
#pragma once

#include "base/bytes.h"

#include <optional>

namespace spillway::agent {

/// kNobody: the threshold is met, and no pod may be evicted.
enum class BrakeVictim { kSomebody, kNobody };

struct BrakeSituation {
  Bytes headroom;              // above the nearest hard threshold; negative below it
  Bytes pods_usage;            // as the kernel charges it, page cache included
  Bytes fall_per_second;       // the steepest of the last ten seconds
  std::optional<Bytes> limit;  // as set now; nullopt: none
  BrakeVictim victim = BrakeVictim::kSomebody;
};

/// What memory.high of all pods should be; nullopt: no limit. It is set while memory could run out within three seconds
/// (at no less than 256 MiB/s), so that pods are slowed 16 MiB before the threshold, and let go at one and a half times
/// that distance. From there on it stays where it is: the kernel slows those the more who are the further above it. A
/// new one is never below what is in use, since whoever writes such a one reclaims the rest on the spot. It is let go
/// when nobody can be evicted: there is nothing to wait for then.
std::optional<Bytes> brake_limit(const BrakeSituation& situation);

}  // namespace spillway::agent
