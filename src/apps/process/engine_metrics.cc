#include "apps/process/engine_metrics.h"

#include <utility>
#include <variant>

namespace spillway::apps {

namespace {

/// Eight bounds of buckets: `first` * 4^k.
std::vector<double> buckets_from(double first) {
  std::vector<double> buckets;
  for (int k = 0; k < 8; ++k, first *= 4) buckets.push_back(first);
  return buckets;
}

}  // namespace

void CountedTransport::execute(client::ApiCommand command, client::Transport::Receiver& receiver) {
  receiver_ = &receiver;
  if (const auto* call = std::get_if<client::SendCall>(&command)) {
    calls_[call->id] = call->request.method;
    if (call->rate_limited_for) observe_wait(call->request.method, *call->rate_limited_for);
  }
  inner_->execute(std::move(command), *this);
}

void CountedTransport::observe_wait(api::Method method, Duration waited) {
  metrics_
      .histogram("rest_client_rate_limiter_duration_seconds",
                 "Client side rate limiter latency in seconds. Broken down by verb, and host.",
                 {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60},
                 {{"verb", api::to_string(method)}, {"host", host_}})
      .observe(std::chrono::duration<double>(waited).count());
}

void CountedTransport::disconnect(client::Transport::Receiver&) {
  receiver_ = nullptr;
  calls_.clear();
  inner_->disconnect(*this);
}

void CountedTransport::on_api_event(client::ApiEvent event) {
  if (const auto* done = std::get_if<client::CallDone>(&event)) {
    if (auto call = calls_.extract(done->id); !call.empty()) {
      const std::string code = done->response ? std::to_string(done->response->status) : "<error>";
      metrics_
          .counter("rest_client_requests_total",
                   "Number of HTTP requests, partitioned by status code, method, and host.",
                   {{"code", code}, {"method", api::to_string(call.mapped())}, {"host", host_}})
          .add();
    }
  }
  if (receiver_ != nullptr) receiver_->on_api_event(std::move(event));
}

TimedControllers::TimedControllers(std::unique_ptr<controllers::ControllerSet> set, runtime::Loop& loop,
                                   telemetry::Registry& metrics)
    : set_(std::move(set)),
      loop_(loop),
      all_nodes_(metrics.histogram("node_collector_update_all_nodes_health_duration_seconds",
                                   "Duration in seconds for NodeController to update the health of all nodes.",
                                   buckets_from(0.01))),
      one_node_(metrics.histogram("node_collector_update_node_health_duration_seconds",
                                  "Duration in seconds for NodeController to update the health of a single node.",
                                  buckets_from(0.001))) {}

void TimedControllers::observe(Duration pass) {
  const double seconds = std::chrono::duration<double>(pass).count();
  all_nodes_.observe(seconds);
  const std::size_t nodes = set_->nodes_known();
  if (nodes > 0) one_node_.observe(seconds / static_cast<double>(nodes));
}

}  // namespace spillway::apps
