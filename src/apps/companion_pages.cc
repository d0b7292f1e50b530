#include "apps/companion_pages.h"

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
  http.limits.connections_max = 64;
  wire::RequestHandler& handler = *made;
  made->http_ = std::make_unique<wire::HttpServer>(loop, handler, std::move(http));
  SPILLWAY_TRY_VOID(made->http_->start());
  return made;
}

wire::RequestHandler::Ticket CompanionPages::on_request(api::Request request, api::UserInfo,
                                                        std::shared_ptr<api::ResponseSink> sink) {
  const auto page = pages_.find(request.target.substr(0, request.target.find('?')));
  if (request.method != api::Method::kGet || page == pages_.end()) {
    sink->on_response({.status = page == pages_.end() ? 404 : 405,
                       .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
                       .body = page == pages_.end() ? "404 page not found\n" : "only GET\n"});
    return 0;
  }
  sink->on_response(
      {.status = 200, .headers = {{"Content-Type", page->second.content_type}}, .body = page->second.text()});
  return 0;
}

}  // namespace spillway::apps
