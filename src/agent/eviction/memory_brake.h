// The brake: how much all pods together may use before the kernel slows them down (memory.high), so that a pod that
// fills memory is met by an eviction and not by the OOM killer. Opt-in: page cache counts as used, so a pod that only
// streams files is slowed as well, and all pods are, not the guilty one alone.
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

/// The memory.high for all pods; nullopt: no limit. It is set while memory could run out within three seconds (at no
/// less than 256 MiB/s), so that pods are slowed 16 MiB before the threshold, and removed at one and a half times that
/// distance. In between it stays unchanged: the further a pod is above it, the more the kernel slows the pod. A new
/// limit is never below the memory in use, since a write of such a limit reclaims the difference at once. The limit is
/// removed when no pod can be evicted: there is nothing to wait for then.
std::optional<Bytes> brake_limit(const BrakeSituation& situation);

}  // namespace spillway::agent
