#include "apiserver/nodes/pod_connect.h"

#include "api/exchange/upgrade.h"
#include "api/stream/stream_options.h"
#include "api/stream/websocket.h"
#include "apiserver/nodes/agent_refusal.h"
#include "apiserver/nodes/pod_container.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace spillway::apiserver {
namespace {

using api::Json;

/// Headers that the two ends negotiate with. None of them identifies the client.
constexpr std::array<std::string_view, 7> kForwardedHeaders = {"connection",
                                                               "upgrade",
                                                               "sec-websocket-key",
                                                               "sec-websocket-version",
                                                               "sec-websocket-protocol",
                                                               "sec-websocket-extensions",
                                                               "x-stream-protocol-version"};

/// Passes the agent's answer on: a refusal with its status, an upgraded connection as it is.
class ConnectSink final : public api::UpgradingSink {
 public:
  /// `place`: held until the connection has ended.
  ConnectSink(ExchangePtr exchange, std::shared_ptr<void> place)
      : exchange_(std::move(exchange)), place_(std::move(place)) {}

  void on_response(api::Response response) override { exchange_->fail(agent_refusal(response)); }

  void on_stream(api::Response head) override {
    static_cast<void>(head);
    exchange_->fail(make_error(ErrorCode::kInternalError, "the node agent did not upgrade the connection"));
  }

  void on_upgrade(api::Response head, std::shared_ptr<api::UpgradedInput> input) override {
    if (exchange_->finished()) return input->on_input_end();
    upgraded_ = api::upgrading(exchange_->release());
    if (upgraded_ == nullptr) return input->on_input_end();
    upgraded_->on_upgrade(std::move(head), std::move(input));
  }

  bool write(std::shared_ptr<const std::string> chunk) override {
    return upgraded_ != nullptr && upgraded_->write(std::move(chunk));
  }

  void on_end() override {
    const auto upgraded = upgraded_;  // ending the exchange may destroy this object
    if (upgraded != nullptr) upgraded->on_end();
  }

  void on_input_used(std::size_t bytes) override {
    if (upgraded_ != nullptr) upgraded_->on_input_used(bytes);
  }

  std::size_t waiting_bytes() const override { return upgraded_ == nullptr ? 0 : upgraded_->waiting_bytes(); }

 private:
  ExchangePtr exchange_;
  std::shared_ptr<void> place_;
  std::shared_ptr<api::UpgradingSink> upgraded_;
};

/// "80,443", as the client wrote it; only old clients send this query.
std::string port_query(const api::Target& target) {
  std::string ports;
  for (const auto& [name, value] : target.query)
    if (name == "ports") ports += (ports.empty() ? "" : ",") + value;
  return ports.empty() ? std::string() : fmt::format("port={}", api::percent_encode(ports));
}

/// A command is for exec alone.
std::string stream_query(const api::Target& target, bool has_command) {
  std::string query = api::to_query(api::requested_streams(target));
  for (const auto& [name, value] : target.query)
    if (has_command && name == "command")
      query += fmt::format("{}command={}", query.empty() ? "" : "&", api::percent_encode(value));
  return query;
}

/// The path and query of the request to the agent.
api::StatusResult<std::string> agent_target(const api::Target& asked, const Route& route, const Json& pod) {
  const std::string_view what = route.subresource->name;
  const std::string place = fmt::format("{}/{}", api::percent_encode(route.ns), api::percent_encode(route.name));
  if (what == "portforward") return fmt::format("/portForward/{}?{}", place, port_query(asked));
  const auto container = pick_container(pod, asked.find("container"));
  if (!container) return container.error();
  return fmt::format("/{}/{}/{}?{}", what, place, api::percent_encode(*container), stream_query(asked, what == "exec"));
}

}  // namespace

void PodConnect::connect(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const ObjectPtr found = core_.cache.of(*route.resource).find(object_key(route.ns, route.name));
  if (!found) return exchange->fail(api::not_found_status(route.resource->group_resource(), route.name));
  const Json pod = found->document();
  const auto target = agent_target(exchange->target, route, pod);
  if (!target) return exchange->fail(target.error());
  const auto agent = agent_of(core_, pod);
  if (!agent) return exchange->fail(agent.error());
  if (gateway_ == nullptr) return exchange->fail(no_way_to(agent->node));
  if (!api::asks_for_upgrade(exchange->request(), "websocket") &&
      !api::asks_for_upgrade(exchange->request(), "SPDY/3.1"))
    return exchange->fail(make_error(ErrorCode::kBadRequest, "Upgrade request required"));
  std::shared_ptr<void> place = open_.take(exchange->user().name);
  if (!place) return exchange->fail(too_many_open_to_nodes());
  api::Request request{
      .method = exchange->request().method, .target = *target, .headers = {}, .body = {}, .document = {}};
  for (const auto& header : exchange->request().headers)
    if (std::ranges::find(kForwardedHeaders, header.first) != kForwardedHeaders.end())
      request.headers.push_back(header);
  gateway_->open(agent->node, agent->address.host, agent->address.port, std::move(request),
                 std::make_shared<ConnectSink>(exchange, std::move(place)));
}

}  // namespace spillway::apiserver
