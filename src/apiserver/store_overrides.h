// Resources with an etcd of their own (--etcd-servers-overrides): checks the flag against the table of resources and
// lists the stores with their resources. Thread: any (pure). Source: kube-apiserver, --etcd-servers-overrides;
// docs/adr/0029-stores-of-resources.md.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

inline constexpr std::string_view kOverridesFlag = "--etcd-servers-overrides";

struct StoreOverride {
  std::string resource;  // "GROUP/RESOURCE", "/events"
  std::vector<std::string> servers;
};

struct StorePlan {
  std::vector<std::string> servers;    // servers as in the flag
  std::vector<std::string> resources;  // "/events", "coordination.k8s.io/leases": in alphabetical order
  std::vector<std::string> storages;   // Resource::storage of each
  std::string name;                    // "events,leases.coordination.k8s.io"
};

/// Overrides that name the same servers share a store. kInvalid, in one line that begins with the flag: a resource that
/// does not exist, may not leave the main store, or is listed twice; servers of the main store, or some of the servers
/// of another override.
Result<std::vector<StorePlan>> plan_stores(const std::vector<std::string>& main_servers,
                                           const std::vector<StoreOverride>& overrides);

}  // namespace spillway::apiserver
