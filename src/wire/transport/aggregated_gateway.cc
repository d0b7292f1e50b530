#include "wire/transport/aggregated_gateway.h"

#include "wire/server/http_exchange.h"

#include <utility>

namespace spillway::wire {

namespace {

constexpr HttpsAggregatedGateway::Ticket kNoTicket = 0;

}  // namespace

HttpsAggregatedGateway::HttpsAggregatedGateway(runtime::Loop& loop, const Options& options)
    : relays_(loop, "spillway-apis", options.bounds, Relays::Passing::kEverything) {}

void HttpsAggregatedGateway::set_identity(std::optional<KeyPair> identity) {
  identity_ = std::move(identity);
  contexts_.clear();
}

Result<std::shared_ptr<const TlsContext>> HttpsAggregatedGateway::context_for(
    const apiserver::AggregatedServer& server) {
  const std::string key = server.verifies ? server.authority_pem : "-";
  if (const auto found = contexts_.find(key); found != contexts_.end()) return found->second;
  SPILLWAY_TRY(made, TlsContext::make_client({.authority_pem = server.verifies ? server.authority_pem : std::string(),
                                              .verify = server.verifies,
                                              .identity = identity_}));
  if (contexts_.size() >= kContextsMax) contexts_.clear();
  contexts_.emplace(key, made);
  return std::move(made);
}

apiserver::AggregatedGateway::Ticket HttpsAggregatedGateway::open(const apiserver::AggregatedServer& to,
                                                                  api::Request request,
                                                                  std::shared_ptr<api::ResponseSink> sink) {
  const auto refuse = [&](const Error& why) {
    sink->on_response(status_response(why));
    return kNoTicket;
  };
  if (relays_.full()) {
    return refuse(make_error(ErrorCode::kTooManyRequests, "too many open requests to API services, try again later"));
  }
  auto context = context_for(to);
  if (!context) return refuse(make_error(ErrorCode::kServiceUnavailable, "caBundle: {}", context.error().text()));
  HttpEndpoint endpoint;
  endpoint.host = to.host;
  endpoint.port = to.port;
  endpoint.authority = request.header("host");
  endpoint.tls_name = to.tls_name;
  endpoint.own_port = own_port_;
  endpoint.tls = *std::move(context);
  return relays_.open(std::move(endpoint), std::move(request), "error trying to reach service", std::move(sink));
}

}  // namespace spillway::wire
