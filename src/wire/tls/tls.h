// TLS for servers and clients: the certificates to show and the authorities to trust. TLS 1.2 and newer. Thread: any
// (immutable once made, shared by all connections). Only the files of this folder and authenticator.cc use OpenSSL.
#pragma once

#include "base/error.h"
#include "wire/net/byte_stream.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct ssl_ctx_st;

namespace spillway::wire {

/// A certificate (or a chain, leaf first) and its private key, both PEM.
struct KeyPair {
  std::string certificate_pem;
  std::string key_pem;
};

/// The subject of a certificate.
struct TlsSubject {
  std::string common_name;
  std::string organization;  // one of the user's groups
};

/// The protocols that the handshake offers (ALPN).
enum class Protocols { kHttp11, kHttp2AndHttp11 };

inline constexpr std::string_view kHttp2 = "h2";

/// A server's choice among the versions and suites that the program has.
struct TlsBounds {
  enum class Version { k12, k13 };

  Version version_min = Version::k12;
  /// Suites of TLS 1.2 by their registered names; names of TLS 1.3 and names that the library lacks are skipped, and if
  /// no other is left the server speaks TLS 1.3 only. Empty: ECDHE with AES-GCM or ChaCha20.
  std::vector<std::string> cipher_suites;
};

class TlsContext {
 public:
  struct ServerOptions {
    KeyPair identity;
    /// Clients may show a certificate signed by this authority; empty: none is requested.
    std::string client_authority_pem;
    Protocols protocols = Protocols::kHttp11;
    TlsBounds bounds = {};
  };

  struct ClientOptions {
    std::string authority_pem;  // the trusted authorities; empty: the system's
    bool verify = true;
    std::optional<KeyPair> identity;
    Protocols protocols = Protocols::kHttp11;
  };

  /// kInvalid: which of the PEM texts does not parse or does not match.
  static Result<std::shared_ptr<const TlsContext>> make_server(const ServerOptions& options);
  static Result<std::shared_ptr<const TlsContext>> make_client(const ClientOptions& options);

  TlsContext(std::shared_ptr<ssl_ctx_st> context, bool verify_peer, Protocols protocols);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// A stream over a connected socket, as the server or as a client that expects `host` (a name or an address) on the
  /// certificate; empty: any that the authority has signed, for a caller that checks peer_certificate() itself. The
  /// handshake happens in handshake(). A client offers what the context does, or less.
  std::unique_ptr<ByteStream> accept_stream(Socket socket) const;
  std::unique_ptr<ByteStream> connect_stream(Socket socket, const std::string& host,
                                             Protocols at_most = Protocols::kHttp2AndHttp11) const;

  /// The protocols that a client offers.
  Protocols protocols() const { return protocols_; }

 private:
  std::shared_ptr<ssl_ctx_st> context_;
  bool verify_peer_;
  Protocols protocols_;
};

}  // namespace spillway::wire
