// The way from the API server to aggregated API servers. Thread: loop.
#pragma once

#include "api/exchange/exchange.h"

#include <cstdint>
#include <memory>
#include <string>

namespace spillway::apiserver {

/// The address of an aggregated API server, and the certificates that verify it.
struct AggregatedServer {
  std::string host;           // an address as digits, or the name of a Service of type ExternalName
  std::uint16_t port = 0;     // above 0
  std::string tls_name;       // expected on the certificate: "NAME.NAMESPACE.svc"
  std::string authority_pem;  // PEM of the required authorities; empty: the authorities of the system
  bool verifies = true;       // false: any certificate is good

  /// "https://10.0.0.7:443", for messages.
  std::string url() const;

  friend bool operator==(const AggregatedServer&, const AggregatedServer&) = default;
};

/// Port: sends a request to an aggregated API server by HTTPS, shows it this server's proxy certificate, and forwards
/// its answer as it arrives, a failure or a redirect as well. Implemented by wire/.
class AggregatedGateway {
 public:
  using Ticket = std::uint64_t;

  virtual ~AggregatedGateway() = default;
  /// An answer with a body is delivered as a stream. A missing answer is a 503 Status without a stream, too many open
  /// requests a 429. The header "host" of `request` is sent as it is.
  virtual Ticket open(const AggregatedServer& to, api::Request request, std::shared_ptr<api::ResponseSink> sink) = 0;
  /// Cancels the call: its sink is not called again.
  virtual void cancel(Ticket ticket) = 0;
};

}  // namespace spillway::apiserver
