#include "apiserver/proxy/proxy_path.h"

#include "apiserver/nodes/node_address.h"
#include "apiserver/proxy/answer_sink.h"
#include "apiserver/proxy/forwarding.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <utility>

namespace spillway::apiserver {
namespace {

using api::Json;
using api::StatusResult;

constexpr std::size_t kNodeSegments = 5;  // /api/v1/nodes/NAME/proxy
constexpr std::size_t kPodSegments = 7;   // /api/v1/namespaces/NAMESPACE/pods/NAME/proxy
constexpr std::string_view kOfAgents = "text/plain";
constexpr std::string_view kOfPods = "application/octet-stream";
constexpr int kMovedPermanently = 301;

std::string host_of(const PodServer& server) {
  const bool v6 = server.address.contains(':');
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", server.address, v6 ? "]" : "", server.port);
}

ProxiedPath path_of(const Exchange& exchange) {
  const bool below_namespace = !exchange.route.ns.empty();
  return proxied_path(exchange.request(), exchange.target, below_namespace ? kPodSegments : kNodeSegments);
}

}  // namespace

void ProxyPath::perform(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  if (!route.resource->namespaced()) return ask_node(exchange);
  const auto server = route.resource->is("", "Pod") ? pod_of(route) : endpoint_of(route);
  if (!server) return exchange->fail(server.error());
  ask_server(exchange, *server);
}

void ProxyPath::ask_node(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const api::Method method = exchange->request().method;
  if (method == api::Method::kOptions || method == api::Method::kHead)
    return exchange->fail(api::method_not_allowed_status());
  const ObjectPtr node = core_.cache.of(*route.resource).find(object_key(route.ns, route.name));
  if (!node) return exchange->fail(api::not_found_status(route.resource->group_resource(), route.name));
  const auto address = node_address(node->document());
  if (!address) return exchange->fail(address.error());
  if (ways_.nodes == nullptr) {
    return exchange->fail(
        make_error(ErrorCode::kServiceUnavailable, "this server has no way to the agent of node {}", route.name));
  }
  std::shared_ptr<void> place;
  if (ways_.open_to_nodes != nullptr) {
    place = ways_.open_to_nodes->take(exchange->user().name);
    if (!place) return exchange->fail(too_many_open_to_nodes());
  }
  ProxiedPath path = path_of(*exchange);
  api::Request request{api::Method::kGet, path.target(), {}, {}};
  const auto step = exchange->steps.begin(RequestStep::Of::kAgent, route.name, core_.now.mono);
  ways_.nodes->open(route.name, address->host, address->port, std::move(request),
                    std::make_shared<AnswerSink>(core_, exchange,
                                                 AnswerSink::From{.path = std::move(path),
                                                                  .hosts = {},
                                                                  .type = kOfAgents,
                                                                  .type_alone = true,
                                                                  .place = place,
                                                                  .step = step}));
}

StatusResult<PodServer> ProxyPath::pod_of(const Route& route) const {
  const auto asked = parse_proxied_name(route.name);
  if (!asked) return make_error(ErrorCode::kBadRequest, "invalid pod request \"{}\"", route.name);
  const ObjectPtr pod = core_.cache.of(*route.resource).find(object_key(route.ns, asked->name));
  if (!pod) return api::not_found_status(route.resource->group_resource(), asked->name);
  return server_of_pod(*asked, pod->document());
}

StatusResult<PodServer> ProxyPath::endpoint_of(const Route& route) {
  const auto asked = parse_proxied_name(route.name);
  if (!asked) return make_error(ErrorCode::kBadRequest, "invalid service request \"{}\"", route.name);
  const std::string key = object_key(route.ns, asked->name);
  const ObjectPtr service = core_.cache.of(*route.resource).find(key);
  if (!service && asks_for_number(*asked)) {
    return api::not_found_status(route.resource->group_resource(), asked->name);
  }
  const ObjectPtr endpoints = core_.cache.of(core_.registry.get("endpoints")).find(key);
  if (!endpoints) return api::not_found_status({"", "endpoints"}, asked->name);
  const ResourceCache& pods = core_.cache.of(core_.registry.get("pods"));
  const auto find_pod = [&](std::string_view name) -> std::optional<Json> {
    const ObjectPtr pod = pods.find(object_key(route.ns, name));
    return pod ? std::optional(pod->document()) : std::nullopt;
  };
  const Json document = service ? service->document() : Json();
  return server_of_service(*asked, &document, endpoints->document(), route.ns, find_pod, core_.rng);
}

void ProxyPath::ask_server(const ExchangePtr& exchange, const PodServer& server) {
  const api::Request& asked = exchange->request();
  ProxiedPath path = path_of(*exchange);
  const bool upgrades = wants_upgrade(asked);
  if (const auto place = place_with_slash(asked.method, path); place && !upgrades) {
    return exchange->answer(kMovedPermanently, {}, "text/plain", {{"Location", *place}});
  }
  if (ways_.pods == nullptr) {
    return exchange->fail(make_error(ErrorCode::kServiceUnavailable, "this server has no way to pods"));
  }
  const std::shared_ptr<void> place = open_to_pods_.take(exchange->user().name);
  if (!place) {
    return exchange->fail(api::retry_status(ErrorCode::kTooManyRequests,
                                            "too many open requests to pods and services, try again later", 1));
  }
  api::Request request{asked.method, path.target(), forwarded_headers(asked, path, ways_.scheme), asked.body};
  const auto step = exchange->steps.begin(RequestStep::Of::kPod, host_of(server), core_.now.mono);
  const auto sink = std::make_shared<AnswerSink>(
      core_, exchange,
      AnswerSink::From{.path = std::move(path),
                       .hosts = {.server = host_of(server), .client = std::string(asked.header("host"))},
                       .type = kOfPods,
                       .place = place,
                       .step = step,
                       .rewrites_links = true});
  // The client may disconnect before the answer begins: the call to the pod is then cancelled.
  const auto ticket = std::make_shared<std::optional<PodGateway::Ticket>>();
  const std::function<void()> cancel = [pods = ways_.pods, ticket] {
    if (*ticket) pods->cancel(**ticket);
  };
  sink->set_cancel(cancel);
  exchange->wait_for_others(cancel);
  *ticket = ways_.pods->open(server, std::move(request), sink);
}

}  // namespace spillway::apiserver
