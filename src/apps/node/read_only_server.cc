#include "apps/node/read_only_server.h"

#include <utility>

namespace spillway::apps {

namespace {

/// Answers in text, as the node's other server gives them.
void refuse_plainly(int code, std::string text, api::ResponseSink& sink) {
  sink.on_response({.status = code,
                    .headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Content-Type-Options", "nosniff"}},
                    .body = std::move(text)});
}

/// The pages that upstream has here. Configuration, decisions and recordings need a right, which no client shows here.
bool is_open_to_all(const agent::NodeRoute& route) {
  using enum agent::NodeHandler;
  if (route.handler == kHealth || route.handler == kSummary) return true;
  return route.handler == kPage && (route.path == "/pods" || route.path.starts_with("/metrics"));
}

}  // namespace

ReadOnlyServer::ReadOnlyServer(runtime::Loop& loop)
    : loop_(loop), pace_(BucketKind::kContinuous, kRequestsPerSecond, kRequestsAtOnce, loop.now().mono) {}

Result<std::unique_ptr<ReadOnlyServer>> ReadOnlyServer::create(const NodeSite& site, const std::string& address,
                                                               std::uint16_t port) {
  std::unique_ptr<ReadOnlyServer> server(new ReadOnlyServer(site.loop));  // NOLINT: private constructor
  wire::HttpServer::Options http;
  http.address = address;
  http.port = port;
  http.limits = wire::HttpLimits::small();
  http.log = site.process.log();
  wire::RequestHandler& handler = *server;
  server->http_ = std::make_unique<wire::HttpServer>(site.loop, handler, std::move(http));
  if (const Outcome listening = server->http_->start(); !listening) {
    Error error = listening.error();
    error.message += "; readOnlyPort of the configuration chooses another port, 0 none";
    return error;
  }
  return server;
}

wire::RequestHandler::Ticket ReadOnlyServer::on_request(wire::Incoming incoming,
                                                        std::shared_ptr<api::ResponseSink> sink) {
  const Ticket ticket = 0;  // every answer is complete when this returns
  if (endpoint_ == nullptr) {
    refuse_plainly(503, "the node is starting or stopping\n", *sink);
    return ticket;
  }
  if (!pace_.try_take(loop_.now().mono)) {
    sink->on_response({.status = 429, .headers = {{"Retry-After", "1"}}, .body = {}});
    return ticket;
  }
  Result<agent::NodeRequest> asked = agent::NodeRequest::parse(std::move(incoming.request));
  if (!asked) {
    sink->on_response(host::KubeletEndpoint::refusal(asked.error()));
  } else if (agent::leads_into_pods(asked->route().handler)) {
    refuse_plainly(405, "Debug endpoints are disabled.\n", *sink);
  } else if (!is_open_to_all(asked->route())) {
    refuse_plainly(404, "404 page not found\n", *sink);
  } else {
    endpoint_->handle(*asked, sink);
  }
  return ticket;
}

void ReadOnlyServer::on_abandoned(Ticket /*ticket*/) {}

}  // namespace spillway::apps
