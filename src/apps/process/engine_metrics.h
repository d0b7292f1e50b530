// Metrics of an engine's cost: its calls to the API server, and how long a pass over the nodes keeps the loop.
// Upstream's names. Thread: loop.
#pragma once

#include "client/engine.h"
#include "controllers/controller_set.h"
#include "runtime/loop.h"
#include "telemetry/metrics.h"

#include <map>
#include <memory>
#include <string>

namespace spillway::apps {

/// Counts calls by code and method, and how long they waited for their turn: rest_client_requests_total,
/// rest_client_rate_limiter_duration_seconds. For one receiver.
class CountedTransport final : public client::Transport, private client::Transport::Receiver {
 public:
  /// `metrics` outlives it. `host`: the server, as a label.
  CountedTransport(std::unique_ptr<client::Transport> inner, telemetry::Registry& metrics, std::string host)
      : inner_(std::move(inner)), metrics_(metrics), host_(std::move(host)) {}

  void execute(client::ApiCommand command, client::Transport::Receiver& receiver) override;
  void disconnect(client::Transport::Receiver& receiver) override;

 private:
  void on_api_event(client::ApiEvent event) override;
  void observe_wait(api::Method method, Duration waited);

  std::unique_ptr<client::Transport> inner_;
  telemetry::Registry& metrics_;
  std::string host_;
  client::Transport::Receiver* receiver_ = nullptr;
  std::map<client::CallId, api::Method> calls_;
};

/// Times the steps in which the controllers assess all nodes: node_collector_update_…_health_duration_seconds.
class TimedControllers final : public client::ApiEngine {
 public:
  TimedControllers(std::unique_ptr<controllers::ControllerSet> set, runtime::Loop& loop, telemetry::Registry& metrics);

  std::string_view name() const override { return set_->name(); }

  void start(Now now) override {
    measured([&] { set_->start(now); });
  }

  void on_api_event(const client::ApiEvent& event, Now now) override {
    measured([&] { set_->on_api_event(event, now); });
  }

  void on_wakeup(Now now) override {
    measured([&] { set_->on_wakeup(now); });
  }

  std::optional<Instant> next_wakeup() const override { return set_->next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return set_->take_api_commands(); }

 private:
  template <typename Step>
  void measured(Step step) {
    const std::uint64_t before = set_->passes();
    const Instant began = loop_.now().mono;
    step();
    if (set_->passes() != before) observe(loop_.now().mono - began);
  }

  void observe(Duration pass);

  std::unique_ptr<controllers::ControllerSet> set_;
  runtime::Loop& loop_;
  telemetry::Histogram all_nodes_;
  telemetry::Histogram one_node_;
};

}  // namespace spillway::apps
