#include "apps/proxy/pages_server.h"

#include <utility>

namespace spillway::apps {

Result<std::unique_ptr<PagesServer>> PagesServer::create(Process& process, const std::string& address,
                                                         std::uint16_t port, Answer answer) {
  std::unique_ptr<PagesServer> server(new PagesServer(std::move(answer)));  // NOLINT: private
  wire::HttpServer::Options http;
  http.address = address;
  http.port = port;
  http.limits = wire::HttpLimits::small();
  http.log = process.log();
  wire::RequestHandler& handler = *server;
  server->http_ = std::make_unique<wire::HttpServer>(process.loop(), handler, std::move(http));
  SPILLWAY_TRY_VOID(server->http_->start());
  return server;
}

void PagesServer::stop(runtime::Loop::Task done) {
  http_->stop(Duration::zero(), std::move(done));
}

wire::RequestHandler::Ticket PagesServer::on_request(wire::Incoming incoming, std::shared_ptr<api::ResponseSink> sink) {
  const std::string_view target = incoming.request.target;
  if (incoming.request.method != api::Method::kGet) {
    sink->on_response(page_of(405, "405: Method Not Allowed\n"));
  } else {
    sink->on_response(answer_(target.substr(0, target.find('?'))));
  }
  return 0;
}

api::Response page_of(int status, std::string text, std::string_view type) {
  return {.status = status,
          .headers = {{"Content-Type", std::string(type)}, {"X-Content-Type-Options", "nosniff"}},
          .body = std::move(text)};
}

}  // namespace spillway::apps
