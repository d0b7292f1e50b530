// The TLS of a node's HTTPS server: its certificate, and the authority of its clients' certificates. Each can be
// replaced while the server runs; what is broken replaces nothing. Thread: loop.
#pragma once

#include "base/error.h"
#include "wire/tls/tls.h"

#include <memory>
#include <string>
#include <utility>

namespace spillway::apps {

/// The properties of a node's HTTPS server that all its certificates share.
struct NodeTls {
  std::string client_authority_pem;  // authority of the trusted client certificates; empty: none are accepted
  wire::TlsBounds bounds = {};
};

class ServingContext {
 public:
  explicit ServingContext(NodeTls tls) : tls_(std::move(tls)) {}

  /// Errors: no certificate, no key of it.
  Outcome set_identity(wire::KeyPair identity);

  /// After set_identity(). Errors: no certificate.
  Outcome set_client_authority(std::string pem);

  /// Null before set_identity().
  const std::shared_ptr<const wire::TlsContext>& context() const { return context_; }

 private:
  Result<std::shared_ptr<const wire::TlsContext>> make(const wire::KeyPair& identity,
                                                       const std::string& authority) const;

  NodeTls tls_;
  wire::KeyPair identity_;
  std::shared_ptr<const wire::TlsContext> context_;
};

}  // namespace spillway::apps
