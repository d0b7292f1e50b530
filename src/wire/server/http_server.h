// An HTTP/1.1 server, plain or over TLS: keep-alive, chunked bodies, Expect: 100-continue, limits and time-outs,
// answers that stream. It knows nothing of resources: a RequestHandler on the loop answers. Sockets live on threads of
// its own; requests and answers cross by posting. Everything is bounded (http_limits.h), with a reserve for the clients
// without which pods do not run (client_rank.h). Thread: loop. Source: RFC 9110, 9112; spec "API server contract", 4.
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"
#include "base/time.h"
#include "runtime/loop.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "wire/http/http_limits.h"
#include "wire/server/authenticator.h"
#include "wire/tls/tls.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace spillway::apiserver {
class Auditor;
}

namespace spillway::wire {

/// Port: who answers requests. Thread: loop.
class RequestHandler {
 public:
  /// Chosen by the handler, handed back in on_abandoned().
  using Ticket = std::uint64_t;

  virtual ~RequestHandler() = default;
  /// Answers into `sink`, now or later. `user` has been authenticated.
  virtual Ticket on_request(api::Request request, api::UserInfo user, std::shared_ptr<api::ResponseSink> sink) = 0;
  /// The client left, or the server cut the stream, before the answer was complete: nothing more reaches the client.
  virtual void on_abandoned(Ticket ticket) = 0;
};

class HttpServer {
 public:
  using Limits = HttpLimits;

  struct Options {
    std::string address = "127.0.0.1";                   // numeric, IPv4 or IPv6
    std::uint16_t port = 0;                              // 0: the system picks a free one
    std::shared_ptr<const TlsContext> tls;               // null: plain HTTP
    std::shared_ptr<const Authenticator> authenticator;  // null: everybody is anonymous
    const apiserver::Auditor* auditor = nullptr;         // of what is refused here; null: none; must outlive the server
    HttpLimits limits;
    int threads = 1;
    telemetry::Log log;
    telemetry::Registry* metrics = nullptr;  // must outlive the server
  };

  /// `loop` and `handler` must outlive the server.
  HttpServer(runtime::Loop& loop, RequestHandler& handler, Options options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Binds, listens and serves. The error says where: "127.0.0.1:6443: address already in use". Called once.
  Outcome start();
  /// The port that is served; 0 before start().
  std::uint16_t port() const;

  /// Connections that come from now on see this certificate; those that are open keep theirs. After start(), and only
  /// where the server began with TLS.
  void set_tls(std::shared_ptr<const TlsContext> tls);

  /// Refuses new connections, ends streams, finishes requests, closes what is left after `grace`, then calls `done` on
  /// the loop. Called once, after start().
  void stop(Duration grace, runtime::Loop::Task done);

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace spillway::wire
