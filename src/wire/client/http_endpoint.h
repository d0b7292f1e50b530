// The address of a server and the credentials for it. Thread: any (a plain value).
#pragma once

#include "base/error.h"
#include "wire/client/client_credentials.h"
#include "wire/client/kubeconfig.h"
#include "wire/tls/tls.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace spillway::wire {

struct HttpEndpoint {
  std::string host;  // a name or an address, without brackets
  std::uint16_t port = 0;
  std::string path_prefix;                // before every target; empty or "/prefix"
  std::shared_ptr<const TlsContext> tls;  // null: plain HTTP
  std::string authority;                  // in place of host and port in host_text(); empty: those
  std::string tls_name;                   // expected on the certificate; empty: host
  /// Expected as the subject of the certificate, in place of a name or address; needs a context that verifies.
  std::optional<TlsSubject> tls_subject;
  /// A server of this process listens on this port: an address of this machine with it is refused. 0: none does.
  std::uint16_t own_port = 0;
  CredentialSource credentials;

  /// "https://127.0.0.1:6443", for messages.
  std::string server_text() const;
  /// The host and port in the form of the Host header and :authority.
  std::string host_text() const;
};

/// The server of a kubeconfig. kInvalid: which field is wrong and why; `path` is the file's name for messages.
/// `offered`: which protocols to offer to it.
Result<HttpEndpoint> make_endpoint(const Kubeconfig& config, const std::string& path,
                                   Protocols offered = Protocols::kHttp2AndHttp11);

}  // namespace spillway::wire
