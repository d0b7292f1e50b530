// The Service `kubernetes`, its Endpoints and its EndpointSlices (kubernetes_objects.h). Addresses of servers that are
// gone are removed; if no address is known none of these objects is created, and those that another program has created
// stay. Nothing is written before a server has announced its address. Thread: loop. Bounds: those of KeptObjects.
#pragma once

#include "apiserver/collect/kept_objects.h"
#include "apiserver/collect/kubernetes_objects.h"

#include <cstdint>
#include <vector>

namespace spillway::apiserver {

class KubernetesService final : public KeptObjects {
 public:
  KubernetesService(Core& core, Writer& writer);

  /// `port`: this server's own, above 0. `addresses`: of all servers of the store, in any order.
  void announce(std::uint16_t port, std::vector<ServingAddress> addresses);

 private:
  // KeptObjects
  std::vector<Wanted> wanted() const override;
  bool concerns(const ResourceCache& cache, const StoredObject& object) const override;

  const ResourceCache& services_;
  const ResourceCache& endpoints_;
  const ResourceCache& slices_;
  std::uint16_t port_ = 0;                 // 0: nothing is announced yet
  std::vector<ServingAddress> addresses_;  // sorted
};

}  // namespace spillway::apiserver
