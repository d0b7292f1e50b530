// The ConfigMap `extension-apiserver-authentication` of kube-system: by which certificates this server knows its
// clients, for servers that believe the same ones (kube-controller-manager, kube-scheduler, metrics-server). Of several
// servers of one store the one that acts says what it believes itself. Thread: loop. Bounds: those of KeptObjects.
// Source: Kubernetes docs, "Configure the Aggregation Layer".
#pragma once

#include "apiserver/collect/kept_objects.h"

#include <string>
#include <vector>

namespace spillway::apiserver {

class ClientAuthorities final : public KeptObjects {
 public:
  /// `pem`: certificates of authorities; empty: clients show none, and nothing is written.
  ClientAuthorities(Core& core, Writer& writer, std::string pem);

  /// Others are believed from now on.
  void set(std::string pem);

 private:
  // KeptObjects
  std::vector<Wanted> wanted() const override;
  bool concerns(const ResourceCache& cache, const StoredObject& object) const override;

  const ResourceCache& maps_;
  std::string pem_;
};

}  // namespace spillway::apiserver
