// Whether the quotas of a namespace leave room for a new or grown object, and what they have used then. Pure.
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

/// What a write adds to a namespace.
struct Request {
  CountedKind kind;
  const api::Pod* pod = nullptr;  // null: of another kind
  api::ResourceList usage;        // of the object as it is to be
  api::ResourceList before;       // as it was; empty: it is new
};

/// What of the request was not used before: amounts above zero. Empty: no quota is asked for anything.
api::ResourceList increase(const Request& request);

/// A quota that the request raises, and what is used of it then.
struct Raised {
  std::size_t quota = 0;  // index
  api::ResourceList used;
};

/// Of quotas in the order of their names; those that it does not raise are left out. kForbidden: one of them does not
/// allow it, in upstream's words; the errors of require_covered(). A request that raises nothing is allowed even where
/// too much is used, and needs no cover.
Result<std::vector<Raised>> charge(std::span<const api::ResourceQuota> quotas, const Request& request,
                                   std::span<const LimitedResource> limited = {});

}  // namespace spillway::quota
