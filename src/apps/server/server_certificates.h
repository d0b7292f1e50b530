// The certificates and keys of an API server below DATA_DIR/pki: its own, its signing keys, and those for clients, kept
// for as long as the process runs. Thread: loop; it waits for the disk when something has to be renewed.
#pragma once

#include "apps/server/certificate_files.h"
#include "base/error.h"
#include "base/time.h"
#include "telemetry/metrics.h"
#include "wire/client/kubeconfig.h"
#include "wire/tls/kept_certificates.h"
#include "wire/tls/request_authority.h"
#include "wire/tls/tls.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apps {

struct Credentials {
  std::shared_ptr<const wire::TlsContext> server;
  std::shared_ptr<const wire::TlsContext> nodes;  // for requests to agents
  wire::KeyPair proxy;                            // shown to aggregated API servers
  wire::Kubeconfig administrator;                 // without the server's address
};

class ServerCertificates {
 public:
  struct Options {
    std::string data_dir;
    std::string bind_address;
    std::vector<std::string> names;  // further names of the server in its certificate
    /// true: the certificates of agents are not verified. Else they must be signed by our authority or by one in this
    /// file; empty: by ours alone.
    bool believe_every_agent = false;
    std::string agents_authority_file;
    wire::Protocols protocols = wire::Protocols::kHttp11;
    CertificateFiles::Paths files = {};
  };

  /// `metrics` must outlive it.
  ServerCertificates(Options options, telemetry::Registry& metrics);

  /// Creates missing certificates and renews those that expire within a month. True: at least one is new, and
  /// credentials() returns it. Errors name the file; the former certificate is used further, and stays due.
  Result<bool> refresh(WallTime now);
  /// The time at which refresh() has something to renew.
  WallTime due() const;

  bool has_files() const { return files_.any(); }

  /// Reads the files that are not ours again. True: something is new, credentials() as well. Errors as of
  /// CertificateFiles::refresh().
  Result<bool> reread(WallTime now) { return files_.refresh(now); }

  /// The authority that clients have to trust to reach this server.
  std::string server_authority_pem() const;

  /// PEM of the authorities whose client certificates are accepted.
  std::string client_authorities_pem() const;

  /// PEM of the authority of the proxy certificate. It signs nothing else: a client that shows a certificate of it
  /// may name any user.
  const std::string& proxy_authority_pem() const { return proxy_.authority_pem(); }

  /// The credentials found by the last refresh().
  Result<Credentials> credentials() const;

  /// Valid after the first refresh(); the address does not change. The authority under DATA_DIR/pki/kubelet-serving is
  /// not the cluster's: its certificates contain names that a node chose, and clients of the API server must not trust
  /// those.
  const wire::OpensslRequestAuthority& serving_authority() const { return *serving_authority_; }

  /// The cluster's own authority: signs the certificates that nodes show to the API server.
  const wire::OpensslRequestAuthority& client_authority() const { return *client_authority_; }

  /// Sets the gauges.
  void set_gauges(WallTime now);
  /// Names an expired certificate; empty: none.
  std::string problem(WallTime now) const;

 private:
  std::map<std::string, WallTime, std::less<>> ends() const;

  Options options_;
  telemetry::Registry& metrics_;
  wire::KeptCertificates kept_;
  wire::KeptCertificates proxy_;  // below DATA_DIR/pki/front-proxy
  CertificateFiles files_;
  std::optional<wire::OpensslRequestAuthority> serving_authority_;
  std::optional<wire::OpensslRequestAuthority> client_authority_;
  std::optional<WallTime> serving_authority_end_;
};

}  // namespace spillway::apps
