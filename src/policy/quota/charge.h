// Charges a new or grown object against the quotas of its namespace: an error, or their usage with it. Pure.
// Source: spec "Scheduler and workloads", 18; vectors workloads/quota_usage.
#pragma once

#include "api/object/pod.h"
#include "api/object/resource_quota.h"
#include "base/error.h"
#include "policy/quota/limited.h"
#include "policy/quota/usage.h"

#include <cstddef>
#include <span>
#include <vector>

namespace spillway::quota {

/// The usage that a write adds to a namespace.
struct Request {
  CountedKind kind;
  const api::Pod* pod = nullptr;  // null: of another kind
  api::ResourceList usage;        // the object's usage after the write
  api::ResourceList before;       // usage of the object before an update; empty: a new object
};

/// The part of the request that was not used before: amounts above zero. Empty: the request charges no quota.
api::ResourceList increase(const Request& request);

/// A quota that the request charges, with the usage that results.
struct Raised {
  std::size_t quota = 0;  // index
  api::ResourceList used;
};

/// The quotas whose usage the request raises, in the order of `quotas` (by name). kForbidden: one of them is exceeded,
/// in upstream's words; or an error of require_covered(). A request that raises nothing is allowed even over a quota,
/// and needs no cover.
Result<std::vector<Raised>> charge(std::span<const api::ResourceQuota> quotas, const Request& request,
                                   std::span<const LimitedResource> limited = {});

}  // namespace spillway::quota
