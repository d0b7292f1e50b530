// Certificates of nodes. Serving certificates (kubernetes.io/kubelet-serving) are approved if the requesting node is
// the one named in them. Their names and addresses are claims of the node; therefore their authority is trusted for
// connections to agents only, and there just the node's name is verified. Client certificates
// (kubernetes.io/kube-apiserver-client-kubelet) are approved for users that may create
// certificatesigningrequests/nodeclient, or …/selfnodeclient if the node requests its own. Both are also signed after a
// manual approval; certificates of other clients (kubernetes.io/kube-apiserver-client) only then. An approved request
// that may not be signed gets the condition Failed. Thread: loop. Bounds: kCollectorWritesMax writes in flight. Source:
// Kubernetes docs, "Certificates and Certificate Signing Requests", Kubernetes signers; spec "API server contract",
// 19.8.
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

  /// Without a reader no request is signed.
  NodeSigner(Core& core, Writer& writer, const Authorizer& authorizer, const CertificateReader* reader,
             Authorities authorities);

 private:
  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  /// The request with its new conditions or certificate; nullopt: unchanged, the request waits for approval.
  std::optional<api::Json> decided(const api::Json& request) const;
  /// The authority of a signer; null: this server has none for it.
  const RequestAuthority* authority_of(std::string_view signer) const;
  /// The reason of an automatic approval; nullopt: the request is not approved.
  std::optional<std::string_view> approval_of(const api::Json& request,
                                              const signing::RequestedCertificate& wanted) const;
  std::optional<std::string_view> serving_approval(const api::UserInfo& requestor, bool own) const;
  std::optional<std::string_view> client_approval(const api::UserInfo& requestor, bool own) const;
  void mark(const StoredObject& object);
  void write(const std::string& name);
  void on_written(const std::string& name, const api::StatusResult<Written>& written);

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
