// The certificates an API server serves with and hands out, kept in its data directory.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "wire/kubeconfig.h"
#include "wire/tls.h"

#include <memory>
#include <string>
#include <vector>

namespace spillway::apps {

struct Credentials {
  std::shared_ptr<const wire::TlsContext> server;
  std::shared_ptr<const wire::TlsContext> nodes;  // for requests to agents
  wire::Kubeconfig administrator;                 // without the server's address
};

/// Makes what is missing or expired under DATA_DIR/pki. Errors name the file.
Result<Credentials> prepare_credentials(const std::string& data_dir, const std::string& bind_address, WallTime now);

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
