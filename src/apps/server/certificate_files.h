// Certificates of an API server that its administrator brings: the serving certificate, and further authorities for
// client certificates. Read at start and again whenever they have changed. Thread: loop; it waits for the disk. Source:
// Kubernetes docs, kube-apiserver, --client-ca-file, --tls-cert-file, --tls-private-key-file.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "wire/tls/tls.h"

#include <optional>
#include <string>
#include <utility>

namespace spillway::apps {

class CertificateFiles {
 public:
  /// Empty path: no such file. The certificate (or a chain, leaf first) and its key are given together.
  struct Paths {
    std::string client_authority;
    std::string certificate;
    std::string key;
  };

  explicit CertificateFiles(Paths paths) : paths_(std::move(paths)) {}

  bool any() const { return !paths_.client_authority.empty() || !paths_.certificate.empty(); }

  /// True: their content has changed. Errors name the file: kInvalid when it holds no certificate or key, the two do
  /// not belong together, or the certificate has ended; the former content is kept.
  Result<bool> refresh(WallTime now);

  /// PEM certificates; empty: no such file.
  const std::string& client_authority_pem() const { return read_.client_authority_pem; }

  const std::optional<wire::KeyPair>& serving() const { return read_.serving; }

  std::optional<WallTime> serving_end() const { return read_.serving_end; }

 private:
  struct Read {
    std::string client_authority_pem;
    std::optional<wire::KeyPair> serving;
    std::optional<WallTime> serving_end;
  };

  Outcome read_serving(Read& into, WallTime now) const;

  Paths paths_;
  Read read_;
};

}  // namespace spillway::apps
