#include "wire/transport/node_gateway.h"

#include "api/text/identities.h"
#include "wire/server/http_exchange.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::wire {

HttpsNodeGateway::HttpsNodeGateway(runtime::Loop& loop, Options options)
    : options_(std::move(options)), relays_(loop, "spillway-nodes", options_.bounds, Relays::Passing::kSuccesses) {}

void HttpsNodeGateway::open(const std::string& node, const std::string& host, int port, api::Request request,
                            std::shared_ptr<api::ResponseSink> sink) {
  if (relays_.full()) {
    return sink->on_response(
        status_response(make_error(ErrorCode::kTooManyRequests, "too many open requests to nodes, try again later")));
  }
  if (port <= 0 || port > 65'535) {
    return sink->on_response(status_response(
        make_error(ErrorCode::kServiceUnavailable, "cannot reach node \"{}\": it serves no port", node)));
  }
  HttpEndpoint endpoint;
  endpoint.host = host;
  endpoint.port = static_cast<std::uint16_t>(port);
  endpoint.tls = options_.tls;
  endpoint.own_port = options_.own_port;
  if (options_.agents == Options::Agents::kVerified)
    endpoint.tls_subject = TlsSubject{std::string(api::kNodeUserPrefix) + node, std::string(api::kNodesGroup)};
  relays_.open(std::move(endpoint), std::move(request), fmt::format("cannot reach node \"{}\"", node), std::move(sink));
}

}  // namespace spillway::wire
