#include "wire/transport/pod_gateway.h"

#include "wire/server/http_exchange.h"

#include <utility>

namespace spillway::wire {

namespace {

constexpr HttpsPodGateway::Ticket kNone = 0;

}  // namespace

Result<std::shared_ptr<const TlsContext>> HttpsPodGateway::unverified_tls() {
  return TlsContext::make_client({.authority_pem = {}, .verify = false, .identity = {}});
}

HttpsPodGateway::HttpsPodGateway(runtime::Loop& loop, Options options)
    : tls_(std::move(options.tls)), relays_(loop, "spillway-pods", options.bounds, Relays::Passing::kEverything) {}

apiserver::PodGateway::Ticket HttpsPodGateway::open(const apiserver::PodServer& to, api::Request request,
                                                    std::shared_ptr<api::ResponseSink> sink) {
  if (relays_.full()) {
    sink->on_response(
        status_response(make_error(ErrorCode::kTooManyRequests, "too many open requests to pods, try again later")));
    return kNone;
  }
  HttpEndpoint endpoint;
  endpoint.host = to.address;
  endpoint.port = to.port;
  endpoint.authority = request.header("host");
  endpoint.own_port = own_port_;
  if (to.tls) endpoint.tls = tls_;
  return relays_.open(std::move(endpoint), std::move(request), "error trying to reach service", std::move(sink));
}

}  // namespace spillway::wire
