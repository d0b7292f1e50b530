// Certificates of nodes. With one (kubernetes.io/kubelet-serving) their agents serve: it is approved where the node
// that asks is the node that is named; the names and addresses in it are the node's own word, therefore its authority
// is one that only the way to agents believes, and it looks at the node's name alone. The other
// (kubernetes.io/kube-apiserver-client-kubelet) they show to the API server: it is approved for who may create
// certificatesigningrequests/nodeclient, or, where the node asks for itself, …/selfnodeclient. Both are also signed
// where somebody has approved them; certificates of other clients (kubernetes.io/kube-apiserver-client) only then. What
// is approved and may not be signed gets the condition Failed. Thread: loop. Bounds: kCollectorWritesMax writes in
// flight. Source: Kubernetes docs, "Certificates and Certificate Signing Requests", Kubernetes signers; spec "API
// server contract", 19.8.
#pragma once

#include "api/json/json.h"
#include "apiserver/access/authorizer.h"
#include "apiserver/ports/certificate_reader.h"
#include "apiserver/ports/request_authority.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/writer.h"
#include "policy/signing/signers.h"

#include <set>
#include <string>

namespace spillway::apiserver {

class NodeSigner final : public Collector {
 public:
  /// Null: of that kind nothing is signed.
  struct Authorities {
    const RequestAuthority* serving = nullptr;
    const RequestAuthority* client = nullptr;
  };

  /// Without a reader it signs nothing.
  NodeSigner(Core& core, Writer& writer, const Authorizer& authorizer, const CertificateReader* reader,
             Authorities authorities);

 private:
  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  /// The request with what follows from it; nullopt: nothing, it waits for somebody's approval.
  std::optional<api::Json> decided(const api::Json& request) const;
  /// Who signs for that signer; null: nobody here.
  const RequestAuthority* authority_of(std::string_view signer) const;
  /// Why the request is approved unseen; nullopt: it is not.
  std::optional<std::string_view> approval_of(const api::Json& request,
                                              const signing::RequestedCertificate& wanted) const;
  std::optional<std::string_view> serving_approval(const api::UserInfo& requestor, bool own) const;
  std::optional<std::string_view> client_approval(const api::UserInfo& requestor, bool own) const;
  void note(const StoredObject& object);
  void write(const std::string& name);

  Core& core_;
  Writer& writer_;
  const Authorizer& authorizer_;
  const CertificateReader* reader_;
  Authorities authorities_;
  const ResourceCache& requests_;
  std::set<std::string> dirty_;
  std::set<std::string> busy_;
};

}  // namespace spillway::apiserver
