// Priority and fairness of requests: the flow of each request, its cost, the gate it passes, and its headers, metrics
// and tables. The configuration may change: each one is an immutable plan, and a request that was classified by an
// earlier plan is classified again when it arrives. Thread: loop, but for place_of().
// Source: spec "API server at scale", 6.
#pragma once

#include "api/exchange/status.h"
#include "apiserver/flow/flow_gate.h"
#include "apiserver/flow/flow_metrics.h"
#include "apiserver/read/core.h"
#include "apiserver/read/watch_hub.h"
#include "apiserver/request/exchange.h"
#include "base/published.h"
#include "policy/flow/built_in.h"
#include "policy/flow/flow_table.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

class FlowControl {
 public:
  using Ticket = FlowGate::Ticket;
  /// Called for a request that has waited: it runs now, or is refused.
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

  /// Takes another configuration into use. Requests that wait or run keep their places.
  void apply(flow::Configuration flows);

  /// The place of the schema that a request belongs to; nullopt: every request runs at once. Thread: any.
  std::optional<FlowPlace> place_of(const api::UserInfo& user, const RequestAttributes& asked) const;

  /// Puts a parsed request into its flow; `ticket` is the exchange's own. The caller answers a refused request. kWaits:
  /// on_turn is called later, unless the request ends before.
  FlowGate::Entry enter(Exchange& exchange, Ticket& ticket, std::optional<api::Status>& refusal);

  /// Ends the request's use of its seats: it was answered, or its client has disconnected. Allowed for a request that
  /// never entered.
  void exit(const Exchange& exchange, Ticket& ticket);

  /// The answer streams from now on, for as long as both sides like: it takes no more seats.
  void release_seats(const Exchange& exchange, Ticket& ticket);

  /// Updates the gauges before they are read.
  void show() { metrics_.show(); }

  /// The text of a page below /debug/api_priority_and_fairness; nullopt: no such page.
  std::optional<std::string> page(std::string_view path) const;

 private:
  /// One configuration as requests use it; by schema.
  struct Plan {
    Plan(std::uint64_t number, flow::Configuration flows) : generation(number), table(std::move(flows)) {}

    std::uint64_t generation;
    flow::FlowTable table;
    std::vector<std::size_t> places;  // in the gate
    std::vector<std::shared_ptr<const FlowMark>> marks;
  };

  void take(flow::Configuration flows);
  int seats_of_list(const Exchange& exchange) const;
  FlowGate::Demand demand_of(const Exchange& exchange, std::size_t schema, std::string_view name) const;
  api::Status refuse(std::size_t schema, FlowGate::Refusal refusal);
  void arm();
  void take_turns();

  bool is_on_;
  Ports ports_;
  FlowGate gate_;
  FlowMetrics metrics_;
  std::shared_ptr<const Plan> plan_;
  Published<Plan> published_;
  std::optional<TimerQueue::Id> timer_;
};

}  // namespace spillway::apiserver
