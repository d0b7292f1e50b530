// The API server's way to the agents of nodes (logs, statistics): HTTPS with a client certificate, the answer streamed
// on as it comes. Thread: loop. Bounds: exchanges at a time, time to connect and to the header of the answer; a client
// that reads slowly slows the node down.
#pragma once

#include "apiserver/ports/node_gateway.h"
#include "runtime/loop.h"
#include "runtime/loop_thread.h"
#include "wire/client/http_client.h"
#include "wire/tls/tls.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace spillway::wire {

class HttpsNodeGateway final : public apiserver::NodeGateway {
 public:
  struct Options {
    std::shared_ptr<const TlsContext> tls;  // null: plain HTTP (tests)
    /// Whether an agent has to show a certificate for system:node:NAME of system:nodes, signed by the authority of
    /// `tls`. A node says itself where it lives: without this, it can name any place.
    enum class Agents { kVerified, kUnverified };
    Agents agents = Agents::kUnverified;
    /// The port this API server listens on: an address of this machine with it is refused. 0: none.
    std::uint16_t own_port = 0;
    HttpClient::Limits limits;
    Duration answer_max = seconds(30);  // to the header of the answer
    std::size_t exchanges_max = 256;
  };

  /// `loop` must outlive the gateway.
  HttpsNodeGateway(runtime::Loop& loop, Options options);
  ~HttpsNodeGateway() override;
  HttpsNodeGateway(const HttpsNodeGateway&) = delete;
  HttpsNodeGateway& operator=(const HttpsNodeGateway&) = delete;

  /// An answer of the node, also a failure, goes to `sink` as it is; no answer is a 503 Status that names the node.
  void open(const std::string& node, const std::string& host, int port, api::Request request,
            std::shared_ptr<api::ResponseSink> sink) override;

  /// Requests from now on show this certificate, and believe this authority.
  void set_tls(std::shared_ptr<const TlsContext> tls) { options_.tls = std::move(tls); }

 private:
  class Relay;

  runtime::Loop& loop_;
  Options options_;
  runtime::LoopThread io_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Relay>> relays_;
};

}  // namespace spillway::wire
