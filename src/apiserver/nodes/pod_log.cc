#include "apiserver/nodes/pod_log.h"

#include "api/exchange/paced_sink.h"
#include "apiserver/nodes/agent_refusal.h"
#include "apiserver/nodes/node_address.h"
#include "apiserver/nodes/pod_container.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kForwardedParameters[] = {"follow",    "previous",   "sinceSeconds", "sinceTime",
                                                     "tailLines", "limitBytes", "timestamps"};

/// Passes the agent's answer on to the client, a refusal with its status.
class RelaySink final : public api::PacedSink {
 public:
  /// `place`: held until the answer has ended.
  RelaySink(Core& core, ExchangePtr exchange, const std::string& node, std::shared_ptr<void> place)
      : core_(core), exchange_(std::move(exchange)), place_(std::move(place)) {
    step_ = exchange_->steps.begin(RequestStep::Of::kAgent, node, core_.now.mono);
  }

  void on_response(api::Response response) override {
    answers(response.status >= 500);
    if (response.ok()) return exchange_->answer(response.status, std::move(response.body), "text/plain");
    exchange_->fail(agent_refusal(response));
  }

  void on_stream(api::Response head) override {
    static_cast<void>(head);
    answers(false);
    exchange_->open_stream("text/plain", [] {});
  }

  bool write(std::shared_ptr<const std::string> chunk) override { return exchange_->write(std::move(chunk)); }

  void on_end() override { exchange_->end(); }

  std::size_t waiting_bytes() const override { return exchange_->waiting_bytes(); }

 private:
  /// A log stream may last as long as it is read: only its beginning counts as the answer.
  void answers(bool failed) {
    if (exchange_->finished()) return;
    core_.catch_up();
    exchange_->steps.end(step_, core_.now.mono, failed);
  }

  Core& core_;
  ExchangePtr exchange_;
  std::shared_ptr<void> place_;
  std::optional<std::size_t> step_;
};

}  // namespace

void PodLog::get(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const ObjectPtr found = core_.cache.of(*route.resource).find(object_key(route.ns, route.name));
  if (!found) return exchange->fail(api::not_found_status(route.resource->group_resource(), route.name));
  const Json pod = found->document();
  const auto container = pick_container(pod, exchange->target.find("container"));
  if (!container) return exchange->fail(container.error());
  const auto agent = agent_of(core_, pod);
  if (!agent) return exchange->fail(agent.error());
  if (gateway_ == nullptr) return exchange->fail(no_way_to(agent->node));
  std::shared_ptr<void> place = open_.take(exchange->user().name);
  if (!place) return exchange->fail(too_many_open_to_nodes());
  std::string target = "/containerLogs/" + route.ns + "/" + route.name + "/" + *container;
  char separator = '?';
  for (const std::string_view name : kForwardedParameters) {
    const std::string* value = exchange->target.find(name);
    if (value == nullptr) continue;
    target += separator;
    target += std::string(name) + "=" + api::percent_encode(*value);
    separator = '&';
  }
  gateway_->open(agent->node, agent->address.host, agent->address.port,
                 {.method = api::Method::kGet, .target = std::move(target)},
                 std::make_shared<RelaySink>(core_, exchange, agent->node, std::move(place)));
}

}  // namespace spillway::apiserver
