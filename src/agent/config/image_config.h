// The members of a KubeletConfiguration about images.
// Thread: any (pure). Source: Kubernetes docs, "Kubelet Configuration (v1beta1)"; spec "Node agent", 17.4.
#pragma once

#include "agent/contract/image_settings.h"
#include "api/json/json.h"
#include "base/error.h"

#include <cstddef>
#include <cstdint>

namespace spillway::agent {

/// kInvalid, in upstream's words: percentages out of range, or the low one above the high one.
Outcome check_policy(const ImageGcPolicy& policy);

/// `effective`: checked, with defaults. Errors as of check_policy.
Result<ImageGcPolicy> image_gc_of(const api::Json& effective);

/// The pace of pulls: registryPullQPS (5; 0: not limited) and registryBurst (10). kInvalid, in upstream's words: a
/// negative number.
struct PullPace {
  std::int64_t per_second = 5;
  std::int64_t burst = 10;
};

Result<PullPace> pull_pace_of(const api::Json& effective);

/// Images that are pulled at the same time: one, unless serializeImagePulls is false or maxParallelImagePulls is more.
/// kInvalid, in upstream's words: a number that cannot be, or that the other member forbids.
Result<std::size_t> parallel_pulls_of(const api::Json& effective);

}  // namespace spillway::agent
