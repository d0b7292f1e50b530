// The surplus and the lack of pods that a Deployment may have during a rollout. Thread: any (pure). Source: Kubernetes
// docs, "Deployments", max unavailable and max surge; spec "Scheduler and workloads", 11 and 12; vectors
// workloads/fenceposts.
#pragma once

#include "api/json/json.h"
#include "api/object/workload.h"
#include "base/error.h"

#include <cstdint>
#include <string_view>

namespace spillway::workloads {

enum class Round { kUp, kDown };

/// A number of pods, or a text like "25%" of `whole`; null is 0. kInvalid: anything else, in upstream's words.
Result<std::int64_t> scaled_value(const api::Json& written, std::int64_t whole, Round round);

/// Both values of the spec, resolved; never both 0, because a rollout could not proceed.
struct Fenceposts {
  std::int64_t surge = 0;
  std::int64_t unavailable = 0;
};

Result<Fenceposts> fenceposts(const api::Json& max_surge, const api::Json& max_unavailable, std::int64_t replicas);

/// The bounds of a rollout: no surge and no unavailable pods unless the strategy is RollingUpdate, and no more
/// unavailable pods than replicas. A bound that cannot be parsed counts as 0.
struct RolloutBounds {
  std::int64_t surge_max = 0;
  std::int64_t unavailable_max = 0;
  std::int64_t available_min = 0;
};

RolloutBounds rollout_bounds(const api::Deployment& deployment);

inline constexpr std::string_view kRollingUpdate = "RollingUpdate";
inline constexpr std::string_view kRecreate = "Recreate";

}  // namespace spillway::workloads
