// The ConfigMap `kube-root-ca.crt` of every active namespace: what its pods verify the API server by. One that is
// missing is made, one with another text is put right if nobody else acts on this cluster, else it is left as it is.
// Without a certificate nothing is done. Thread: loop. Bounds: kCollectorWritesMax writes in flight. Source: Kubernetes
// docs, "Managing Service Accounts".
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

  void look_at(const std::string& ns);
  void create(const std::string& ns);
  void put_right(const std::string& ns, const std::string& uid);
  void settle(const std::string& ns, const api::StatusResult<Written>& result);

  Core& core_;
  Writer& writer_;
  const std::string pem_;
  const Others others_;
  const ResourceCache& namespaces_;
  const ResourceCache& maps_;
  std::set<std::string> dirty_;    // to be looked at
  std::set<std::string> writing_;  // namespaces with a write on its way
};

}  // namespace spillway::apiserver
