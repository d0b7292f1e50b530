#include "wire/server/bounds/refusals.h"

namespace spillway::wire {

namespace {

/// The time between two lines of one reason.
constexpr Duration kLineInterval = seconds(10);

}  // namespace

std::string_view to_string(Refusal refusal) {
  switch (refusal) {
    case Refusal::kConnections:
      return "connections";
    case Refusal::kDisplaced:
      return "displaced";
    case Refusal::kHandshakeTime:
      return "handshake_time";
    case Refusal::kRequestTime:
      return "request_time";
    case Refusal::kMalformed:
      return "malformed";
    case Refusal::kRequestBytes:
      return "request_bytes";
    case Refusal::kQueue:
      return "queue";
    case Refusal::kWaitingBytes:
      return "waiting_bytes";
    case Refusal::kStalled:
      return "stalled";
    case Refusal::kFlood:
      return "flood";
  }
  return "";
}

Refusals::Refusals(telemetry::Log log, telemetry::Registry* metrics) : log_(std::move(log)) {
  if (metrics == nullptr) return;
  for (std::size_t i = 0; i < kReasons; ++i) {
    reasons_[i].counter = metrics->counter("spillway_http_refusals_total",
                                           "Connections closed and requests refused, by the bound that they reached",
                                           {{"reason", to_string(static_cast<Refusal>(i))}});
  }
}

void Refusals::count(Refusal refusal, std::string_view who, Instant now) {
  Reason& reason = reasons_[static_cast<std::size_t>(refusal)];
  reason.counter.add();
  std::uint64_t times = 0;
  {
    const std::lock_guard lock(mutex_);
    ++reason.unsaid;
    if (reason.last_line && now - *reason.last_line < kLineInterval) return;
    reason.last_line = now;
    times = std::exchange(reason.unsaid, 0);
  }
  // Refusals that any client may cause without credentials are expected.
  const bool expected =
      refusal == Refusal::kHandshakeTime || refusal == Refusal::kMalformed || refusal == Refusal::kRequestTime;
  if (expected) {
    log_.debug("http client refused", {{"reason", to_string(refusal)}, {"client", who}, {"times", times}});
  } else {
    log_.warning("http client refused", {{"reason", to_string(refusal)}, {"client", who}, {"times", times}});
  }
}

}  // namespace spillway::wire
