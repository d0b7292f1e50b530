#include "apiserver/proxy/proxy_path.h"

#include "api/exchange/upgrade.h"
#include "apiserver/nodes/node_address.h"
#include "apiserver/proxy/forwarding.h"
#include "base/ascii.h"

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
constexpr int kStatusMin = 200;
constexpr int kStatusMax = 599;
constexpr int kBadGateway = 502;

std::string host_of(const PodServer& server) {
  const bool v6 = server.address.contains(':');
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", server.address, v6 ? "]" : "", server.port);
}

/// A status that HTTP defines: statuses of answers are labels of metrics.
int known_status(int status) {
  return status >= kStatusMin && status <= kStatusMax ? status : kBadGateway;
}

/// Passes an answer on: its status, its allowed headers, its body as it arrives.
class AnswerSink final : public api::UpgradingSink {
 public:
  struct From {
    ProxiedPath path;
    ProxiedHosts hosts;
    std::string_view type;                 // for an answer without one
    bool type_alone = false;               // only this header is passed on
    std::shared_ptr<void> place;           // held until it has ended; may be null
    std::optional<std::size_t> step = {};  // the request's
    std::function<void()> leave = [] {};   // the client has gone
  };

  AnswerSink(Core& core, ExchangePtr exchange, From from)
      : core_(core), exchange_(std::move(exchange)), from_(std::move(from)) {}

  void on_response(api::Response response) override {
    begins(response.status);
    std::string body = std::exchange(response.body, {});
    api::Response head = shown(response);
    const std::string type = take_type(head);
    exchange_->answer(head.status, std::move(body), type, std::move(head.headers));
  }

  void on_stream(api::Response head) override {
    begins(head.status);
    api::Response told = shown(head);
    const std::string type = take_type(told);
    exchange_->open_stream(type, from_.leave, told.status, std::move(told.headers));
  }

  void on_upgrade(api::Response head, std::shared_ptr<api::UpgradedInput> input) override {
    begins(head.status);
    if (exchange_->finished()) return input->on_input_end();
    upgraded_ = api::upgrading(exchange_->release());
    if (upgraded_ == nullptr) return input->on_input_end();
    api::Response told = shown(head);
    told.status = head.status;
    told.headers.emplace_back("Connection", "Upgrade");
    told.headers.emplace_back("Upgrade", head.header("upgrade"));
    upgraded_->on_upgrade(std::move(told), std::move(input));
  }

  bool write(std::shared_ptr<const std::string> chunk) override {
    return upgraded_ != nullptr ? upgraded_->write(std::move(chunk)) : exchange_->write(std::move(chunk));
  }

  void on_end() override {
    const auto upgraded = upgraded_;  // its end may be the end of this
    upgraded != nullptr ? upgraded->on_end() : exchange_->end();
  }

  void on_cut() override {
    const auto upgraded = upgraded_;
    upgraded != nullptr ? upgraded->on_end() : exchange_->cut();
  }

  void on_input_used(std::size_t bytes) override {
    if (upgraded_ != nullptr) upgraded_->on_input_used(bytes);
  }

  std::size_t waiting_bytes() const override {
    return upgraded_ != nullptr ? upgraded_->waiting_bytes() : exchange_->waiting_bytes();
  }

  void set_leave(std::function<void()> leave) { from_.leave = std::move(leave); }

 private:
  /// A stream may last: only the time until it begins counts.
  void begins(int status) {
    if (exchange_->finished()) return;
    core_.catch_up();
    exchange_->steps.end(from_.step, core_.now.mono, status >= 500);
  }

  api::Response shown(const api::Response& answer) const {
    api::HeaderList headers = returned_headers(answer, from_.path, from_.hosts);
    if (from_.type_alone)
      std::erase_if(headers, [](const auto& header) { return !equal_ignoring_case(header.first, "content-type"); });
    return {known_status(answer.status), std::move(headers), {}, {}};
  }

  std::string take_type(api::Response& head) const {
    std::string type(head.header("content-type"));
    std::erase_if(head.headers, [](const auto& header) { return equal_ignoring_case(header.first, "content-type"); });
    return type.empty() ? std::string(from_.type) : type;
  }

  Core& core_;
  ExchangePtr exchange_;
  From from_;
  std::shared_ptr<api::UpgradingSink> upgraded_;
};

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
                       .step = step});
  // The client may leave before the answer begins: the call to the pod is then cancelled.
  const auto ticket = std::make_shared<std::optional<PodGateway::Ticket>>();
  const std::function<void()> leave = [pods = ways_.pods, ticket] {
    if (*ticket) pods->cancel(**ticket);
  };
  sink->set_leave(leave);
  exchange->wait_for_others(leave);
  *ticket = ways_.pods->open(server, std::move(request), sink);
}

}  // namespace spillway::apiserver
