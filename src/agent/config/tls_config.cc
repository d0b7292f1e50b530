#include "agent/config/tls_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace spillway::agent {
namespace {

struct CipherSuite {
  std::string_view name;
  bool insecure = false;  // without forward secrecy, with RC4 or 3DES, or with SHA-256 in CBC mode
};

/// Suites that a kubelet 1.32 accepts, ordered by name. Two of them have an older name besides.
constexpr auto kCipherSuites = std::to_array<CipherSuite>({
    {"TLS_AES_128_GCM_SHA256"},
    {"TLS_AES_256_GCM_SHA384"},
    {"TLS_CHACHA20_POLY1305_SHA256"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", true},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"},
    {"TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", true},
    {"TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", true},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", true},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"},
    {"TLS_ECDHE_RSA_WITH_RC4_128_SHA", true},
    {"TLS_RSA_WITH_3DES_EDE_CBC_SHA", true},
    {"TLS_RSA_WITH_AES_128_CBC_SHA", true},
    {"TLS_RSA_WITH_AES_128_CBC_SHA256", true},
    {"TLS_RSA_WITH_AES_128_GCM_SHA256", true},
    {"TLS_RSA_WITH_AES_256_CBC_SHA", true},
    {"TLS_RSA_WITH_AES_256_GCM_SHA384", true},
    {"TLS_RSA_WITH_RC4_128_SHA", true},
});
static_assert(std::ranges::is_sorted(kCipherSuites, {}, &CipherSuite::name));

constexpr std::string_view kOlderName = "_CHACHA20_POLY1305";

Outcome read_version(std::string_view name, TlsSettings& settings) {
  if (name.empty() || name == "VersionTLS12") return {};
  if (name == "VersionTLS13") {
    settings.floor = TlsFloor::kTls13;
    return {};
  }
  if (name != "VersionTLS10" && name != "VersionTLS11")
    return invalid("tlsMinVersion", "unknown tls version \"{}\"", name);
  settings.warnings.push_back(fmt::format("tlsMinVersion is {}: this node uses TLS 1.2 and later in any case", name));
  return {};
}

Outcome read_suites(const api::Json::Array& names, TlsSettings& settings) {
  for (const api::Json& each : names) {
    const std::string_view name = each.string_at({});
    const auto* const found = std::ranges::lower_bound(kCipherSuites, name, {}, &CipherSuite::name);
    if (found == kCipherSuites.end() || found->name != name)
      return invalid("tlsCipherSuites", "Cipher suite {} not supported or doesn't exist", name);
    if (found->insecure) settings.warnings.push_back(fmt::format("tlsCipherSuites has {}, which is insecure", name));
    settings.cipher_suites.push_back(name.ends_with(kOlderName) ? fmt::format("{}_SHA256", name) : std::string(name));
  }
  return {};
}

}  // namespace

Result<TlsSettings> tls_of(const api::Json& effective) {
  TlsSettings settings;
  if (const api::Json* suites = effective.find("tlsCipherSuites"); suites != nullptr && suites->if_array() != nullptr)
    SPILLWAY_TRY_VOID(read_suites(*suites->if_array(), settings));
  SPILLWAY_TRY_VOID(read_version(effective.string_at({"tlsMinVersion"}), settings));
  if (settings.floor == TlsFloor::kTls13 && !settings.cipher_suites.empty())
    settings.warnings.emplace_back("tlsCipherSuites has no effect: the suites of TLS 1.3 cannot be chosen");
  return settings;
}

}  // namespace spillway::agent
