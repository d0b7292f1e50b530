// The certificates an API server serves with and hands out, kept in its data directory.
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

struct Credentials {
  std::shared_ptr<const wire::TlsContext> server;
  std::shared_ptr<const wire::TlsContext> nodes;  // for requests to agents
  wire::Kubeconfig administrator;                 // without the server's address
};

/// Makes what is missing or expired under DATA_DIR/pki. `serving_authority_pem`: who signs for agents; empty: whoever
/// answers for a node is believed. Errors name the file.
Result<Credentials> prepare_credentials(const std::string& data_dir, const std::string& bind_address,
                                        const std::string& serving_authority_pem, wire::Protocols protocols,
                                        WallTime now);

/// The authority under DATA_DIR/pki/kubelet-serving. It is not the cluster's: what it signs names whatever a node says,
/// and clients of the API server must not believe that.
Result<wire::OpensslRequestAuthority> open_serving_authority(const std::string& data_dir, WallTime now);
/// The cluster's own authority, under DATA_DIR/pki: signs what nodes show to the API server.
Result<wire::OpensslRequestAuthority> open_client_authority(const std::string& data_dir, WallTime now);

/// The keys of a node's HTTPS server. Nothing of them touches the disk: an agent that starts again asks again.
class NodeServingKeys final : public agent::CertificateKeys {
 public:
  using Use = std::function<void(std::shared_ptr<const wire::TlsContext>)>;

  /// `use` is given what is to be served with from then on.
  NodeServingKeys(const std::string& node_name, const std::string& address, std::string client_authority_pem, Use use);

  Result<std::string> make_request() override;
  Result<WallTime> install(const std::string& certificate_pem) override;

 private:
  wire::CertificateRequest wanted_;
  std::string client_authority_pem_;
  Use use_;
  std::string key_pem_;  // of the last request
};

/// For the HTTPS server of an agent: its own certificate under STATE_DIR/pki, clients of the given authority.
Result<std::shared_ptr<const wire::TlsContext>> prepare_node_server(const std::string& state_dir,
                                                                    const std::string& address,
                                                                    const std::string& client_authority_pem,
                                                                    WallTime now);

struct ControllerCertificate {
  std::shared_ptr<const wire::TlsContext> context;
  std::string authority_pem;  // what clients may believe
};

struct ControllerCertificateOptions {
  std::string certificate_file;  // with key_file; both empty: a certificate of its own making that nobody has signed
  std::string key_file;
  std::vector<std::string> hosts;  // besides localhost and the host name
  std::string client_authority_pem;
};

/// For the HTTPS server of a controller. Nothing is left on the disk. Errors name the file.
Result<ControllerCertificate> prepare_controller_server(const ControllerCertificateOptions& options, WallTime now);

}  // namespace spillway::apps
