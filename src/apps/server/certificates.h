// The certificates that servers of agents, controllers and schedulers serve with. Those of the API server:
// server_certificates.h.
#pragma once

#include "agent/serving/node_certificate.h"
#include "base/error.h"
#include "base/time.h"
#include "wire/client/kubeconfig.h"
#include "wire/tls/certificate_authority.h"
#include "wire/tls/request_authority.h"
#include "wire/tls/tls.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace spillway::apps {

/// Keys of a node's HTTPS server, in memory only: a restarted agent requests a new certificate.
class NodeServingKeys final : public agent::CertificateKeys {
 public:
  using Use = std::function<Outcome(wire::KeyPair)>;

  /// `use` is given the certificate to serve with from then on.
  NodeServingKeys(const std::string& node_name, const std::string& address, Use use);

  Result<std::string> make_request() override;
  Result<WallTime> install(const std::string& certificate_pem) override;

 private:
  wire::CertificateRequest wanted_;
  Use use_;
  std::string key_pem_;  // key of the last request
};

/// The certificate that an agent makes for its HTTPS server, under STATE_DIR/pki.
Result<wire::KeyPair> keep_node_certificate(const std::string& state_dir, const std::string& address, WallTime now);

struct ProcessCertificate {
  std::shared_ptr<const wire::TlsContext> context;
  std::string authority_pem;  // PEM of the authorities that clients trust
};

struct ProcessCertificateOptions {
  std::string certificate_file;  // with key_file; both empty: a self-signed certificate
  std::string key_file;
  std::vector<std::string> hosts;  // besides localhost and the host name
  std::string client_authority_pem;
};

/// TLS of the HTTPS server of controllers or of a scheduler. No file is left on the disk. Errors name the file.
Result<ProcessCertificate> prepare_process_server(const ProcessCertificateOptions& options, WallTime now);

}  // namespace spillway::apps
