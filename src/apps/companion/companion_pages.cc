#include "apps/companion/companion_pages.h"

#include "api/exchange/strict_target.h"

#include <utility>

namespace spillway::apps {

Result<std::unique_ptr<CompanionPages>> CompanionPages::create(runtime::Loop& loop, const telemetry::Log& log,
                                                               const std::string& address,
                                                               std::map<std::string, Page> pages) {
  std::unique_ptr<CompanionPages> made(new CompanionPages(std::move(pages)));  // NOLINT: private constructor
  const std::size_t colon = address.rfind(':');
  wire::HttpServer::Options http;
  http.address = address.substr(0, colon);
  if (http.address.starts_with('[')) http.address = http.address.substr(1, http.address.size() - 2);
  http.port = static_cast<std::uint16_t>(std::stoul(address.substr(colon + 1)));
  http.log = log;
  http.limits = wire::HttpLimits::small();
  http.limits.connections = {
      .connections_max = 64, .unproven_max = 64, .unproven_per_address_max = 64, .ordinary_max = 64};
  wire::RequestHandler& handler = *made;
  made->http_ = std::make_unique<wire::HttpServer>(loop, handler, std::move(http));
  SPILLWAY_TRY_VOID(made->http_->start());
  return made;
}

CompanionPages::Page CompanionPages::text(std::string content_type, std::function<std::string()> body) {
  return [type = std::move(content_type), body = std::move(body)](const api::Target&) {
    return api::Response{.status = 200, .headers = {{"Content-Type", type}}, .body = body()};
  };
}

wire::RequestHandler::Ticket CompanionPages::on_request(wire::Incoming incoming,
                                                        std::shared_ptr<api::ResponseSink> sink) {
  const api::Request& request = incoming.request;
  const auto refuse = [&](int status, const char* why) {
    sink->on_response({.status = status, .headers = {{"Content-Type", "text/plain; charset=utf-8"}}, .body = why});
    return 0;
  };
  const Result<api::Target> target = api::parse_strict_target(request.target);
  const auto page = target ? pages_.find(api::path_of(*target)) : pages_.end();
  if (page == pages_.end()) return refuse(404, "404 page not found\n");
  if (request.method != api::Method::kGet) return refuse(405, "only GET\n");
  sink->on_response(page->second(*target));
  return 0;
}

}  // namespace spillway::apps
