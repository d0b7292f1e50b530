// The API server's connections to aggregated API servers, by HTTPS: each is verified by its APIService, and is shown
// the proxy certificate. Redirects are answers like any other. Thread: loop. Bounds: relays.h; contexts of TLS that are
// kept, kContextsMax.
#pragma once

#include "apiserver/ports/aggregated_gateway.h"
#include "runtime/loop.h"
#include "wire/tls/tls.h"
#include "wire/transport/relays.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace spillway::wire {

class HttpsAggregatedGateway final : public apiserver::AggregatedGateway {
 public:
  static constexpr std::size_t kContextsMax = 64;

  struct Options {
    Relays::Bounds bounds = {.limits = {}, .answer_max = seconds(60), .exchanges_max = 512};
  };

  /// `loop` must outlive the gateway.
  HttpsAggregatedGateway(runtime::Loop& loop, const Options& options);

  /// The port this API server listens on: an address of this machine with it is refused. Before: none is.
  void set_own_port(std::uint16_t port) { own_port_ = port; }

  /// The certificate that is shown from now on; nullopt: none.
  void set_identity(std::optional<KeyPair> identity);

  Ticket open(const apiserver::AggregatedServer& to, api::Request request,
              std::shared_ptr<api::ResponseSink> sink) override;

  void cancel(Ticket ticket) override { relays_.cancel(ticket); }

 private:
  Result<std::shared_ptr<const TlsContext>> context_for(const apiserver::AggregatedServer& server);

  std::optional<KeyPair> identity_;
  std::uint16_t own_port_ = 0;
  std::map<std::string, std::shared_ptr<const TlsContext>> contexts_;  // by authorities; "-": unverified
  Relays relays_;
};

}  // namespace spillway::wire
