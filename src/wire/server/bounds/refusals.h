// Counts the requests and connections that an HTTP server has refused: a metric for each reason, and a log line from
// time to time.
// Thread: any.
#pragma once

#include "base/time.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

namespace spillway::wire {

enum class Refusal {
  kConnections,    // no place for another connection
  kDisplaced,      // a connection made place for another
  kHandshakeTime,  // no TLS, or no request, in time
  kRequestTime,    // the request did not arrive in time
  kMalformed,      // not HTTP, or beyond the bounds
  kRequestBytes,   // too many bytes of requests in memory
  kQueue,          // too many requests wait
  kWaitingBytes,   // too many bytes wait for clients
  kStalled,        // a client that took too little of its answer
  kFlood,          // the client causes work without requests (flood_guard.h)
};

std::string_view to_string(Refusal refusal);

class Refusals {
 public:
  /// `metrics` may be null.
  Refusals(telemetry::Log log, telemetry::Registry* metrics);

  /// `now`: monotonic. `who`: the client's name or address, for the log.
  void count(Refusal refusal, std::string_view who, Instant now);

 private:
  static constexpr std::size_t kReasons = 10;

  struct Reason {
    telemetry::Counter counter;
    std::uint64_t unsaid = 0;          // since the last line; guarded by mutex
    std::optional<Instant> last_line;  // guarded by mutex
  };

  telemetry::Log log_;
  std::mutex mutex_;
  std::array<Reason, kReasons> reasons_;
};

}  // namespace spillway::wire
