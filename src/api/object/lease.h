// coordination.k8s.io/v1 Lease: node heartbeats and leader election.
// Thread: any. Source: Kubernetes docs, "Leases"; KEP-589.
#pragma once

#include "api/object/meta.h"

#include <optional>
#include <string>

namespace spillway::api {

struct Lease {
  static constexpr std::string_view kKind = "Lease";
  static constexpr std::string_view kApiVersion = "coordination.k8s.io/v1";
  ObjectMeta metadata;
  std::optional<std::string> holder_identity;
  std::optional<std::int32_t> lease_duration_seconds;
  std::optional<WallTime> acquire_time;
  std::optional<WallTime> renew_time;
  std::optional<std::int32_t> lease_transitions;

  friend bool operator==(const Lease&, const Lease&) = default;
};

}  // namespace spillway::api
