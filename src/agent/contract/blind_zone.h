// The part of the memory that memory.available counts as free and no process can get: the kernel's OOM killer acts
// while the signal still shows that much, so a threshold within it is never met in time.
// Thread: any (pure). Source: spec "Wake-up sources", 1.
#pragma once

#include "agent/contract/options.h"
#include "base/bytes.h"
#include "policy/eviction/threshold.h"
#include "policy/reason.h"

#include <span>
#include <vector>

namespace spillway::agent {

/// memory.available below which the kernel's OOM killer may act first on a machine of this size: as measured on 512 MB
/// (55 MiB) and 1.5 GB (95 MiB), in between and beyond by the same slope, at most 95 MiB.
Bytes oom_blind_zone(Bytes memory);

struct BlindThreshold {
  eviction::Signal signal{};
  Bytes threshold;
  Bytes blind_zone;
};

/// Hard memory.available thresholds that lie within the node's blind zone. None where MemAvailable itself is the
/// estimator, which has no such zone. `memory`: the node's.
std::vector<BlindThreshold> thresholds_in_blind_zone(std::span<const eviction::Threshold> thresholds, Bytes memory,
                                                     const EvictionOptions& options);

policy::Reason blind_zone_reason(const BlindThreshold& threshold);

}  // namespace spillway::agent
