// ComponentStatuses: the health of the controllers, the scheduler and the store. Nothing is stored. The health of a
// component in another process is that of its lease, since the component is not called; the store is healthy if it
// accepts writes.
// Thread: loop. Source: API reference, ComponentStatus; Kubernetes docs, "Leases", leader election.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/read/stored_object.h"
#include "apiserver/request/exchange.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

class ComponentStatuses {
 public:
  /// kInProcess: controllers and scheduler are part of this process and need no lease.
  enum class Components { kElsewhere, kInProcess };

  ComponentStatuses(Core& core, Components components) : core_(core), components_(components) {}

  /// GET of one, or of the list, with the warning that the kind is deprecated.
  void read(const ExchangePtr& exchange) const;

 private:
  std::vector<ObjectPtr> all(const Resource& resource) const;
  api::Json by_leases(std::span<const std::string_view> names) const;

  Core& core_;
  Components components_;
};

}  // namespace spillway::apiserver
