// A companion's own pages over plain HTTP: metrics, health, decisions, state. For loopback only: requests are not
// authenticated.
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"
#include "runtime/loop.h"
#include "telemetry/log.h"
#include "wire/server/http_server.h"

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace spillway::apps {

class CompanionPages final : private wire::RequestHandler {
 public:
  using Page = std::function<api::Response(const api::Target& target)>;

  /// Always 200.
  static Page text(std::string content_type, std::function<std::string()> body);

  /// Listens on "ADDRESS:PORT" and serves `pages` by path.
  static Result<std::unique_ptr<CompanionPages>> create(runtime::Loop& loop, const telemetry::Log& log,
                                                        const std::string& address, std::map<std::string, Page> pages);

  std::uint16_t port() const { return http_->port(); }

  void stop(runtime::Loop::Task done) { http_->stop(Duration::zero(), std::move(done)); }

 private:
  explicit CompanionPages(std::map<std::string, Page> pages) : pages_(std::move(pages)) {}

  Ticket on_request(wire::Incoming incoming, std::shared_ptr<api::ResponseSink> sink) override;

  void on_abandoned(Ticket) override {}

  std::map<std::string, Page> pages_;
  std::unique_ptr<wire::HttpServer> http_;
};

}  // namespace spillway::apps
