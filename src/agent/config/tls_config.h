// The members tlsMinVersion and tlsCipherSuites of a KubeletConfiguration.
// Thread: any (pure). Source: Kubernetes docs, "Kubelet Configuration (v1beta1)"; RFC 8446, B.4.
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::agent {

/// The oldest version that a node's server speaks. TLS 1.0 and 1.1 are no choice: RFC 8996 forbids them.
enum class TlsFloor : std::uint8_t { kTls12, kTls13 };

struct TlsSettings {
  TlsFloor floor = TlsFloor::kTls12;
  /// Suites of TLS 1.2 and 1.3 by their registered names; empty: those of the program. They bind TLS 1.2 only.
  std::vector<std::string> cipher_suites;
  /// Warnings about values that have no effect: an old version, an insecure suite, suites beside TLS 1.3.
  std::vector<std::string> warnings;
};

/// `effective`: checked, with defaults. kInvalid, in upstream's words: an unknown version or suite.
Result<TlsSettings> tls_of(const api::Json& effective);

}  // namespace spillway::agent
