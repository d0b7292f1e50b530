// The server of `spillway dashboard`: the page, and its requests to an API server with the caller's own credentials,
// for clients that have the secret path. It stores nothing. A request is forwarded if it is addressed to this server by
// a name of its own, has the token of the path, is not sent by a page of another origin, and is on the list of
// proxied_request.h. Thread: loop.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "base/error.h"
#include "runtime/loop.h"
#include "telemetry/log.h"
#include "wire/client/http_client.h"
#include "wire/dashboard/api_relay.h"
#include "wire/dashboard/controller_way.h"
#include "wire/dashboard/dashboard_page.h"
#include "wire/server/http_server.h"

#include <cstdint>
#include <memory>
#include <string>

namespace spillway::wire {

/// Port: runs what-if simulations. Thread: loop.
class WhatIfRunner {
 public:
  virtual ~WhatIfRunner() = default;
  /// Answers `sink` once, also with a refusal. `id` is unknown to it.
  virtual void open(std::uint64_t id, const api::Json& question, std::shared_ptr<api::ResponseSink> sink) = 0;
  /// Called when the answer is not needed any more.
  virtual void abandon(std::uint64_t id) = 0;
};

class DashboardServer final : private RequestHandler {
 public:
  struct Options {
    std::string address = "127.0.0.1";  // numeric
    std::uint16_t port = 0;             // 0: any free one
    HttpEndpoint endpoint;              // the API server, with the credentials
    ControllerWay::Options controllers;
    std::shared_ptr<WhatIfRunner> what_if;  // null: the page does not offer it
    std::string version;
    telemetry::Log log;
  };

  /// Listens. The error names the address, or the lack of random bytes.
  static Result<std::unique_ptr<DashboardServer>> start(runtime::Loop& loop, Options options);

  /// The URL to open in a browser; any client with it acts as the owner of the credentials.
  std::string url() const;

  void stop(runtime::Loop::Task done);

 private:
  DashboardServer(runtime::Loop& loop, Options options, std::string token);

  Ticket on_request(Incoming incoming, std::shared_ptr<api::ResponseSink> sink) override;

  void on_abandoned(Ticket ticket) override;

  void ask_what_if(Ticket ticket, const api::Request& request, std::shared_ptr<api::ResponseSink> sink);

  std::string address_;
  std::string token_;
  DashboardDoor door_;
  ApiRelay relay_;
  ControllerWay controllers_;
  std::shared_ptr<WhatIfRunner> what_if_;
  Ticket last_ticket_ = 0;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace spillway::wire
