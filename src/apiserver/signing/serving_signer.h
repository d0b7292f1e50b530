// Certificates with which the agents of nodes serve: requests for kubernetes.io/kubelet-serving are approved and signed
// where the node that asks is the node that is named, or where somebody has approved them. The names and addresses in
// them are the node's own word; therefore the authority is one that only the way to agents believes, and it looks at
// the node's name alone. Thread: loop. Bounds: kCollectorWritesMax writes in flight. Source: Kubernetes docs,
// "Certificates and Certificate Signing Requests", Kubernetes signers; spec "API server contract", 19.8.
#pragma once

#include "api/json/json.h"
#include "apiserver/access/authorizer.h"
#include "apiserver/ports/certificate_reader.h"
#include "apiserver/ports/serving_authority.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/writer.h"
#include "policy/signing/signers.h"

#include <set>
#include <string>

namespace spillway::apiserver {

class ServingSigner final : public Collector {
 public:
  /// Without a reader or an authority it signs nothing.
  ServingSigner(Core& core, Writer& writer, const Authorizer& authorizer, const CertificateReader* reader,
                const ServingAuthority* authority);

  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void run() override;

 private:
  /// The request with what follows from it; nullopt: nothing, it waits for somebody's approval.
  std::optional<api::Json> decided(const api::Json& request) const;
  /// May the requestor have approved it as well?
  bool may_approve(const api::Json& request) const;
  void note(const StoredObject& object);
  void write(const std::string& name);

  Core& core_;
  Writer& writer_;
  const Authorizer& authorizer_;
  const CertificateReader* reader_;
  const ServingAuthority* authority_;
  const ResourceCache& requests_;
  std::set<std::string> dirty_;
  std::set<std::string> busy_;
};

}  // namespace spillway::apiserver
