// Priority and fairness of requests: the flow of each request, its cost, the gate it passes, and its headers, metrics
// and tables. Thread: loop.
// Source: spec "API server at scale", 6.
#pragma once

#include "api/exchange/status.h"
#include "apiserver/flow/flow_gate.h"
#include "apiserver/flow/flow_metrics.h"
#include "apiserver/read/core.h"
#include "apiserver/read/watch_hub.h"
#include "apiserver/request/exchange.h"
#include "policy/flow/built_in.h"
#include "telemetry/metrics.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

class FlowControl {
 public:
  using Ticket = FlowGate::Ticket;
  /// A request has waited: it is to run, or is refused.
  using OnTurn = std::function<void(std::uint64_t id, const std::optional<api::Status>& refusal)>;

  struct Ports {
    Core& core;
    const WatchHub& hub;
    telemetry::Registry& metrics;
    OnTurn on_turn;
  };

  struct Rules {
    bool is_on = true;  // false: every request runs at once
    flow::Configuration flows = flow::built_in_configuration();
    int seats = 600;  // for all levels together, above 0
  };

  FlowControl(Rules rules, Ports ports);
  FlowControl(const FlowControl&) = delete;
  FlowControl& operator=(const FlowControl&) = delete;

  /// The place of the schema that a request belongs to; nullopt: every request runs at once. Pure. Thread: any.
  std::optional<std::size_t> schema_of(const api::UserInfo& user, const RequestAttributes& asked) const;

  /// Puts a parsed request into its flow; `ticket` is the exchange's own. The caller answers a refused request. kWaits:
  /// on_turn is called later, unless the request ends before.
  FlowGate::Entry enter(Exchange& exchange, Ticket& ticket, std::optional<api::Status>& refusal);

  /// Answered, or gone; also of one that never entered.
  void leave(const Exchange& exchange, Ticket& ticket);

  /// The answer streams from now on, for as long as both sides like: it takes no more seats.
  void stand(const Exchange& exchange, Ticket& ticket);

  /// Updates the gauges before they are read.
  void show() { metrics_.show(); }

  /// The text of a page below /debug/api_priority_and_fairness; nullopt: no such page.
  std::optional<std::string> page(std::string_view path) const;

 private:
  int seats_of_list(const Exchange& exchange) const;
  FlowGate::Demand demand_of(const Exchange& exchange, std::size_t schema, std::string_view name) const;
  api::Status refuse(std::size_t schema, FlowGate::Refusal refusal);
  void arm();
  void take_turns();

  bool is_on_;
  Ports ports_;
  FlowGate gate_;
  FlowMetrics metrics_;
  std::vector<FlowMark> marks_;  // by schema
  std::optional<TimerQueue::Id> timer_;
};

}  // namespace spillway::apiserver
