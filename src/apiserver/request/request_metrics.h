// Counts of answered requests and open ones, under upstream's names. Labels are bounded by the registry.
// Thread: loop.
#pragma once

#include "apiserver/request/exchange.h"
#include "base/time.h"
#include "telemetry/metrics.h"

#include <map>
#include <string>
#include <tuple>

namespace spillway::apiserver {

class RequestMetrics {
 public:
  explicit RequestMetrics(telemetry::Registry& registry);

  void answered(const Exchange& exchange, int code, Instant now);

  void set_in_flight(std::size_t count) { in_flight_.set(static_cast<double>(count)); }

  void set_watches(std::size_t count) { watches_.set(static_cast<double>(count)); }

 private:
  telemetry::Registry& registry_;
  telemetry::Gauge in_flight_;
  telemetry::Gauge watches_;
  std::map<std::tuple<std::string_view, std::string_view, int>, telemetry::Counter> by_request_;
  std::map<std::string_view, telemetry::Histogram> duration_by_verb_;
};

}  // namespace spillway::apiserver
