// Waits, on a server whose store is shared, until writes that other servers have acknowledged are visible here: those
// to the object's store if the request needs the present state, and those to the main store if the request's rights
// depend on them. A refusal always waits for the main store.
// Thread: loop. Bounds: two barriers for each request, which the stores limit in time. Source: docs/servers.md; spec
// "etcd as the store", 6.3.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"
#include "store/store.h"

namespace spillway::apiserver {

class RequestRights;

class StoreBarriers {
 public:
  /// Every reference must outlive the barriers.
  StoreBarriers(Core& core, const RequestRights& rights) : core_(core), rights_(rights) {}

  /// True if `reached` is called, now or later: with an error if a store does not answer. False: the request, which is
  /// for a resource, need not wait.
  bool wait(const Exchange& exchange, store::Completion<store::Revision> reached);

 private:
  Origin& main() const { return *core_.cache.origins().front(); }

  Origin& origin_of(const Exchange& exchange) const;
  bool wait_apart(const Exchange& exchange, Origin& own, store::Completion<store::Revision> reached);

  Core& core_;
  const RequestRights& rights_;
};

}  // namespace spillway::apiserver
