// Metrics of the gate: requests that run, wait and are refused, under upstream's names. Names of schemas and levels
// come from clients: the first kSeriesMax pairs are labels, later ones are counted as "(other)". Thread: loop. Source:
// Kubernetes docs, "API Priority and Fairness", metrics; spec "API server at scale", 6.6.
#pragma once

#include "apiserver/flow/flow_gate.h"
#include "telemetry/metrics.h"

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

/// "queue-full", "concurrency-limit", "time-out".
std::string_view to_string(FlowGate::Refusal refusal);

class FlowMetrics {
 public:
  static constexpr std::size_t kSeriesMax = 320;

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
  /// The gate has another configuration: its places may have other names.
  void follow();
  /// Shows the requests that wait and run now.
  void show();

 private:
  static constexpr std::size_t kRefusals = 3;

  struct Names {
    std::string level;
    std::string schema;

    friend bool operator==(const Names&, const Names&) = default;
  };

  struct Instruments {
    Names names;  // labels of this schema
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
  Names names_of(std::size_t schema) const;
  /// The names as labels.
  Names labels_of(const Names& names);
  void make_counters(const Names& labels, Instruments& made);
  void make_times(const Names& labels, Instruments& made);

  const FlowGate& gate_;
  telemetry::Registry& registry_;
  std::vector<std::optional<Instruments>> by_schema_;  // by place of the schema; made with its first request
  std::set<std::pair<std::string, std::string>> series_;
  std::map<std::string, telemetry::Gauge, std::less<>> levels_;
};

}  // namespace spillway::apiserver
