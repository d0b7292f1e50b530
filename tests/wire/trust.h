// A certificate for a server, clients that trust it, and the transports of a test: unencrypted, over TLS with HTTP/1.1,
// or with HTTP/2.
#pragma once

#include "wire/client/http_endpoint.h"
#include "wire/server/http_server.h"
#include "wire/temp_folder.h"
#include "wire/tls/certificate_authority.h"
#include "wire/tls/tls.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace spillway::wire {

struct Trust {
  explicit Trust(Protocols spoken = Protocols::kHttp2AndHttp11)
      : authority(*CertificateAuthority::open(folder / "pki", present())),
        authority_pem(authority.certificate_pem()),
        server(*TlsContext::make_server({identity(authority), authority_pem, spoken})),
        client(*TlsContext::make_client(
            {.authority_pem = authority_pem, .identity = {}, .protocols = Protocols::kHttp2AndHttp11})) {}

  HttpServer::Options serving() const {
    HttpServer::Options options;
    options.tls = server;
    return options;
  }

  /// A context for clients with a certificate.
  std::shared_ptr<const TlsContext> client_as(const std::string& name) const {
    auto pair = authority.issue({CertificateRequest::Use::kClient, name, {}, {}}, present());
    EXPECT_TRUE(pair);
    return *TlsContext::make_client(
        {.authority_pem = authority_pem, .identity = *pair, .protocols = Protocols::kHttp2AndHttp11});
  }

  static WallTime present() { return runtime::RealClock::read().wall; }

  static KeyPair identity(const CertificateAuthority& authority) {
    auto pair =
        authority.issue({CertificateRequest::Use::kServer, "apiserver", {}, {"127.0.0.1", "localhost"}}, present());
    EXPECT_TRUE(pair);
    return *pair;
  }

  TempFolder folder;
  CertificateAuthority authority;
  std::string authority_pem;
  std::shared_ptr<const TlsContext> server;
  std::shared_ptr<const TlsContext> client;
};

enum class Over { kPlain, kTlsHttp11, kHttp2 };

inline std::string name_of(Over over) {
  return over == Over::kPlain ? "plain" : over == Over::kTlsHttp11 ? "http11" : "h2";
}

/// Runs a test over each transport; the client offers HTTP/2 wherever there is TLS.
class OverEach : public ::testing::TestWithParam<Over> {
 protected:
  static const Trust& trust() {
    static const Trust both;
    static const Trust http11(Protocols::kHttp11);
    return GetParam() == Over::kHttp2 ? both : http11;
  }

  static HttpServer::Options serving() {
    return GetParam() == Over::kPlain ? HttpServer::Options() : trust().serving();
  }

  static HttpEndpoint reach(std::uint16_t port) {
    HttpEndpoint endpoint;
    endpoint.host = "127.0.0.1";
    endpoint.port = port;
    if (GetParam() != Over::kPlain) endpoint.tls = trust().client;
    return endpoint;
  }

  static bool multiplexes() { return GetParam() == Over::kHttp2; }
};

/// The parameters for INSTANTIATE_TEST_SUITE_P.
inline auto over_each() {
  return ::testing::Values(Over::kPlain, Over::kTlsHttp11, Over::kHttp2);
}

inline std::string over_name(const ::testing::TestParamInfo<Over>& row) {
  return name_of(row.param);
}

}  // namespace spillway::wire
