// The ConfigMap `kube-root-ca.crt` of every active namespace: the certificates by which its pods verify the API server.
// A missing one is created; one with another text is restored if no other controller manager acts on this cluster, else
// it is left unchanged. Without a certificate nothing is done. Thread: loop. Bounds: kCollectorWritesMax writes in
// flight. Source: Kubernetes docs, "Managing Service Accounts".
#pragma once

#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/writer.h"

#include <set>
#include <string>

namespace spillway::apiserver {

class RootCaPublisher final : public Collector {
 public:
  enum class Others { kMayAct, kNone };

  /// `pem`: the authority's certificate; empty: there is none.
  RootCaPublisher(Core& core, Writer& writer, std::string pem, Others others);

 private:
  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  void sync(const std::string& ns);
  void create(const std::string& ns);
  void put_right(const std::string& ns, const std::string& uid);
  void on_written(const std::string& ns, const api::StatusResult<Written>& result);

  Core& core_;
  Writer& writer_;
  const std::string pem_;
  const Others others_;
  const ResourceCache& namespaces_;
  const ResourceCache& maps_;
  std::set<std::string> dirty_;    // namespaces to sync
  std::set<std::string> writing_;  // namespaces with a write on its way
};

}  // namespace spillway::apiserver
