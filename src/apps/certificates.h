// The certificates an API server serves with and hands out, kept in its data directory.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "wire/kubeconfig.h"
#include "wire/tls.h"

#include <memory>
#include <string>

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

}  // namespace spillway::apps
