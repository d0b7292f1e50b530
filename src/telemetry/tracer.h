// Creates spans and their ids, and keeps the spans that wait to be sent. Thread: loop. Bounds: kWaitingMax spans wait;
// further spans are dropped and counted.
#pragma once

#include "base/rng.h"
#include "base/time.h"
#include "telemetry/metrics.h"
#include "telemetry/span.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace spillway::telemetry {

class Tracer {
 public:
  static constexpr std::size_t kWaitingMax = 4096;
  /// Requests that took this long are always traced: users ask about them.
  static constexpr Duration kSlow = milliseconds(500);

  /// `requests_ppm`: number of traced requests per million, 0 to 1,000,000.
  Tracer(std::uint64_t seed, std::uint32_t requests_ppm, Registry& metrics);

  /// True if a request that took so long is traced.
  bool wants_request(Duration took) { return took >= kSlow || rng_.chance_ppm(requests_ppm_); }

  TraceId new_trace();
  SpanId new_span();

  /// Adds the spans of one operation, which are sent together or not at all.
  void add(std::vector<Span> spans);

  /// `wake` is called when the first span waits; the sender of spans sets it.
  void when_waiting(std::function<void()> wake) { wake_ = std::move(wake); }

  std::size_t waiting() const { return waiting_.size(); }

  /// The oldest of those that wait, `count` at most.
  std::vector<Span> take(std::size_t count);

  // Count the spans that take() returned and that were sent, or lost.
  void sent(std::size_t count) { sent_.add(static_cast<double>(count)); }

  void lost(std::size_t count) { dropped_.add(static_cast<double>(count)); }

 private:
  Rng rng_;
  std::uint32_t requests_ppm_;
  std::deque<Span> waiting_;
  std::function<void()> wake_;
  Counter sent_;
  Counter dropped_;
};

}  // namespace spillway::telemetry
