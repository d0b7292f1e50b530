#include "apiserver/nodes/node_proxy.h"

#include "api/exchange/paced_sink.h"
#include "apiserver/nodes/node_address.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace spillway::apiserver {
namespace {

constexpr std::string_view kPlain = "text/plain";

std::string type_of(const api::Response& response) {
  for (const auto& [name, value] : response.headers) {
    if (name == "Content-Type") return value;
  }
  return std::string(kPlain);
}

class RelaySink final : public api::PacedSink {
 public:
  RelaySink(Core& core, ExchangePtr exchange, const std::string& node) : core_(core), exchange_(std::move(exchange)) {
    step_ = exchange_->steps.begin(RequestStep::Of::kAgent, node, core_.now.mono);
  }

  void on_response(api::Response response) override {
    answers(response.status >= 500);
    const std::string type = type_of(response);
    exchange_->answer(response.status, std::move(response.body), type);
  }

  void on_stream(api::Response head) override {
    answers(false);
    exchange_->open_stream(type_of(head), [] {});
  }

  bool write(std::shared_ptr<const std::string> chunk) override { return exchange_->write(std::move(chunk)); }

  void on_end() override { exchange_->end(); }

  std::size_t waiting_bytes() const override { return exchange_->waiting_bytes(); }

 private:
  /// A stream goes on for as long as it is read: what counts is when it begins.
  void answers(bool failed) {
    if (exchange_->finished()) return;
    core_.catch_up();
    exchange_->steps.end(step_, core_.now.mono, failed);
  }

  Core& core_;
  ExchangePtr exchange_;
  std::optional<std::size_t> step_;
};

/// What follows ".../nodes/NAME/proxy" in the target, query and all; at least "/".
std::string path_below(const std::string& target) {
  static constexpr std::string_view kNodes = "/nodes/";
  const std::size_t name = target.find(kNodes);
  const std::size_t subresource = name == std::string::npos ? name : target.find('/', name + kNodes.size());
  const std::size_t rest = subresource == std::string::npos ? subresource : target.find_first_of("/?", subresource + 1);
  if (rest == std::string::npos) return "/";
  return target[rest] == '?' ? "/" + target.substr(rest) : target.substr(rest);
}

}  // namespace

void NodeProxy::get(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const ObjectPtr node = core_.cache.of(*route.resource).find(object_key(route.ns, route.name));
  if (!node) return exchange->fail(api::not_found_status(route.resource->group_resource(), route.name));
  const auto address = node_address(node->document());
  if (!address) return exchange->fail(address.error());
  if (gateway_ == nullptr) {
    return exchange->fail(
        make_error(ErrorCode::kServiceUnavailable, "this server has no way to the agent of node {}", route.name));
  }
  gateway_->open(route.name, address->host, address->port,
                 api::Request{api::Method::kGet, path_below(exchange->request().target), {}, {}},
                 std::make_shared<RelaySink>(core_, exchange, route.name));
}

}  // namespace spillway::apiserver
