// The ConfigMap `extension-apiserver-authentication` of kube-system: the authorities by which this server verifies its
// clients, for servers that trust the same ones (kube-controller-manager, kube-scheduler, metrics-server), and those by
// which they verify that a request, with headers that name its user, comes from this server. Of several servers of one
// store the active one writes the authorities of clients; each adds the authority of its own proxy certificate. Thread:
// loop. Bounds: those of KeptObjects; kProxiesMax authorities of proxies.
// Source: Kubernetes docs, "Configure the Aggregation Layer".
#pragma once

#include "apiserver/collect/kept_objects.h"

#include <cstddef>
#include <string>
#include <vector>

namespace spillway::apiserver {

class ClientAuthorities final : public KeptObjects {
 public:
  static constexpr std::size_t kProxiesMax = 16;

  /// Certificates of authorities, as PEM.
  struct Authorities {
    std::string clients;  // empty: clients show no certificates, and nothing is written of them
    std::string proxies;  // the authority of this server's proxy certificate; empty: it has none
  };

  ClientAuthorities(Core& core, Writer& writer, Authorities authorities);

  /// Replaces the authorities of clients.
  void set(std::string pem);

 private:
  // KeptObjects
  std::vector<Wanted> wanted() const override;
  bool concerns(const ResourceCache& cache, const StoredObject& object) const override;

  const ResourceCache& maps_;
  api::Json proxy_data() const;

  std::string pem_;
  std::string proxies_;
};

}  // namespace spillway::apiserver
