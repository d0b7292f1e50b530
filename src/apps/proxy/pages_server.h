// A small HTTP server without TLS that answers GET by path: health and metrics of a proxy, health checks of load
// balancers. Thread: loop.
#pragma once

#include "apps/process/process.h"
#include "wire/server/http_server.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::apps {

class PagesServer final : public Part, private wire::RequestHandler {
 public:
  using Answer = std::function<api::Response(std::string_view path)>;

  /// Listens. The error names the address.
  static Result<std::unique_ptr<PagesServer>> create(Process& process, const std::string& address, std::uint16_t port,
                                                     Answer answer);

  std::uint16_t port() const { return http_->port(); }

  void stop(runtime::Loop::Task done) override;

 private:
  explicit PagesServer(Answer answer) : answer_(std::move(answer)) {}

  Ticket on_request(wire::Incoming incoming, std::shared_ptr<api::ResponseSink> sink) override;

  void on_abandoned(Ticket /*ticket*/) override {}

  Answer answer_;
  std::unique_ptr<wire::HttpServer> http_;
};

/// A page of text, as plain text unless `type` is given.
api::Response page_of(int status, std::string text, std::string_view type = "text/plain; charset=utf-8");

}  // namespace spillway::apps
