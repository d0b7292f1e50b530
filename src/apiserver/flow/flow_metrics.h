// Metrics of the gate: requests that run, wait and are refused, under upstream's names. Labels are bounded by the
// configuration.
// Thread: loop. Source: Kubernetes docs, "API Priority and Fairness", metrics; spec "API server at scale", 6.6.
#pragma once

#include "apiserver/flow/flow_gate.h"
#include "telemetry/metrics.h"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// "queue-full", "concurrency-limit", "time-out".
std::string_view to_string(FlowGate::Refusal refusal);

class FlowMetrics {
 public:
  /// `gate` must outlive it.
  FlowMetrics(const FlowGate& gate, telemetry::Registry& registry);

  void arrived(const FlowGate::Ticket& ticket);
  /// Counts a request that began after waiting for `waited`.
  void began(const FlowGate::Ticket& ticket, Duration waited);
  void refused(std::size_t schema, FlowGate::Refusal refusal);
  /// The client has gone while the request waited.
  void cancelled(std::size_t schema);
  /// Counts a request that was refused or cancelled after waiting for `waited`.
  void waited_in_vain(std::size_t schema, Duration waited);
  void ended(const FlowGate::Ticket& ticket, Duration ran);
  /// Shows the requests that wait and run now.
  void show();

 private:
  static constexpr std::size_t kRefusals = 3;

  struct Instruments {
    telemetry::Counter dispatched;
    std::array<telemetry::Counter, kRefusals> refused;
    telemetry::Counter cancelled;
    telemetry::Gauge waiting;
    telemetry::Gauge running;
    telemetry::Gauge seats;
    telemetry::Histogram wait;
    telemetry::Histogram wait_in_vain;
    telemetry::Histogram run;
    telemetry::Histogram estimate;
  };

  Instruments& of(std::size_t schema);
  void make_counters(std::size_t schema, Instruments& made);
  void make_times(std::size_t schema, Instruments& made);

  const FlowGate& gate_;
  telemetry::Registry& registry_;
  std::vector<std::optional<Instruments>> by_schema_;  // made with their first request
};

}  // namespace spillway::apiserver
