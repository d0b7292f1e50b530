// The API server's connections to the agents of nodes (logs, statistics): HTTPS with a client certificate, the answer
// forwarded as it arrives. Thread: loop. Bounds: relays.h.
#pragma once

#include "apiserver/ports/node_gateway.h"
#include "runtime/loop.h"
#include "wire/tls/tls.h"
#include "wire/transport/relays.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace spillway::wire {

class HttpsNodeGateway final : public apiserver::NodeGateway {
 public:
  struct Options {
    std::shared_ptr<const TlsContext> tls;  // null: plain HTTP (tests)
    /// kVerified: an agent must show a certificate for system:node:NAME of system:nodes, signed by the authority of
    /// `tls`. A node announces its own address: without verification it can name any place.
    enum class Agents { kVerified, kUnverified };
    Agents agents = Agents::kUnverified;
    /// The port this API server listens on: an address of this machine with it is refused. 0: none.
    std::uint16_t own_port = 0;
    Relays::Bounds bounds;
  };

  /// `loop` must outlive the gateway.
  HttpsNodeGateway(runtime::Loop& loop, Options options);

  /// An answer of the node, also a failure, is passed to `sink` unchanged; a missing answer is a 503 Status that names
  /// the node.
  void open(const std::string& node, const std::string& host, int port, api::Request request,
            std::shared_ptr<api::ResponseSink> sink) override;

  /// Sets the certificate to show and the authority to trust in later requests.
  void set_tls(std::shared_ptr<const TlsContext> tls) { options_.tls = std::move(tls); }

 private:
  Options options_;
  Relays relays_;
};

}  // namespace spillway::wire
