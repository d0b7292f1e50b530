// An HTTP/1.1 server, plain or over TLS: keep-alive, chunked bodies, Expect: 100-continue, limits and time-outs,
// answers that stream. It does not depend on resources: a RequestHandler on the loop answers. Sockets are on threads of
// its own, each with its share of the connections. Between a thread and the loop, requests and answers of one turn
// cross together (request_line.h, outbox.h). Everything is bounded (http_limits.h), with a reserve for the clients
// without which pods do not run (client_rank.h). Thread: loop. Source: RFC 9110, 9112; spec "API server contract", 4;
// spec "HTTP/2", 6.
#pragma once

#include "api/exchange/exchange.h"
#include "api/text/ip_address.h"
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
#include <vector>

namespace spillway::apiserver {
class Auditor;
struct ReadRequest;
}  // namespace spillway::apiserver

namespace spillway::wire {

/// A request that has arrived completely.
struct Incoming {
  api::Request request;
  std::shared_ptr<const api::UserInfo> user;  // authenticated; not null
  /// The parts that were read before its turn; null: none.
  std::shared_ptr<const apiserver::ReadRequest> read = {};
};

/// kYes: a body is read before the turn of its request.
enum class ReadBody { kNo, kYes };

/// Port: the handler of requests. Thread: loop, but for read().
class RequestHandler {
 public:
  /// Chosen by the handler, handed back in on_abandoned().
  using Ticket = std::uint64_t;

  virtual ~RequestHandler() = default;
  /// Parses a request as far as possible without the state of the handler. Pure; the result is passed with the request.
  /// Thread: any, while the handler lives.
  virtual std::shared_ptr<const apiserver::ReadRequest> read(const Incoming& incoming, ReadBody body) const;
  /// Answers into `sink`, now or later.
  virtual Ticket on_request(Incoming incoming, std::shared_ptr<api::ResponseSink> sink) = 0;
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
    std::shared_ptr<const Authenticator> authenticator;  // null: all clients are anonymous
    // Records refusals of this server; null: none; must outlive the server.
    const apiserver::Auditor* auditor = nullptr;
    HttpLimits limits;
    int threads = 1;           // serving threads, from 1
    double goaway_chance = 0;  // chance that an HTTP/2 client is to reconnect after a request; from 0 to 1
    telemetry::Log log;
    telemetry::Registry* metrics = nullptr;  // must outlive the server
  };

  /// `loop` and `handler` must outlive the server.
  HttpServer(runtime::Loop& loop, RequestHandler& handler, Options options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Binds, listens and serves. The error names the address: "127.0.0.1:6443: address already in use". Called once.
  Outcome start();
  /// Serves the same port at another address, which this machine may only get later, for clients of `networks` and of
  /// this machine: connections of others are closed before a byte of them is read. The error names the address. Called
  /// after start().
  Outcome serve_at(const std::string& address, std::vector<api::IpRange> networks);
  /// The port that is served; 0 before start().
  std::uint16_t port() const;

  /// New connections see this certificate; open ones keep theirs. Called after start(), and only if the server began
  /// with TLS.
  void set_tls(std::shared_ptr<const TlsContext> tls);

  /// The number of crossings between the threads and the loop.
  struct Crossings {
    std::uint64_t requests = 0;       // received
    std::uint64_t request_tasks = 0;  // tasks that passed requests to the loop, or reported abandoned ones
    std::uint64_t answer_tasks = 0;   // by which answers and pieces of streams left
  };

  Crossings crossings() const;

  /// Bytes of answers and streams that wait for their clients; those that several connections share once.
  std::size_t waiting_bytes() const;

  /// Refuses new connections, ends streams, finishes requests, closes the remaining connections after `grace`, then
  /// calls `done` on the loop. Called once, after start().
  void stop(Duration grace, runtime::Loop::Task done);

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace spillway::wire
