// The API server's connections to servers in pods, by HTTP or HTTPS, without a client certificate or credentials. The
// certificates of pods are not verified, as upstream: no authority certifies their addresses.
// Thread: loop. Bounds: relays.h.
#pragma once

#include "apiserver/ports/pod_gateway.h"
#include "runtime/loop.h"
#include "wire/tls/tls.h"
#include "wire/transport/relays.h"

#include <cstdint>
#include <memory>

namespace spillway::wire {

class HttpsPodGateway final : public apiserver::PodGateway {
 public:
  struct Options {
    std::shared_ptr<const TlsContext> tls;  // verifies no server, shows no certificate
    Relays::Bounds bounds = {.limits = {}, .exchanges_max = 128};
  };

  /// `loop` must outlive the gateway. kInternalError: no TLS can be had.
  static Result<std::shared_ptr<const TlsContext>> unverified_tls();

  HttpsPodGateway(runtime::Loop& loop, Options options);

  /// The port this API server listens on: an address of this machine with it is refused. Before: none is.
  void set_own_port(std::uint16_t port) { own_port_ = port; }

  Ticket open(const apiserver::PodServer& to, api::Request request, std::shared_ptr<api::ResponseSink> sink) override;

  void cancel(Ticket ticket) override { relays_.cancel(ticket); }

 private:
  const std::shared_ptr<const TlsContext> tls_;
  std::uint16_t own_port_ = 0;
  Relays relays_;
};

}  // namespace spillway::wire
