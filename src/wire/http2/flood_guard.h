// Detects an HTTP/2 client that causes work without requests: counts frames that cost the server something and carry no
// request. Pure; time is an argument. Thread: one at a time. Source: CVE-2019-9511 to -9518, CVE-2023-44487; spec
// "HTTP/2", 5.
#pragma once

#include "base/time.h"
#include "base/token_bucket.h"

#include <cstdint>
#include <string_view>

namespace spillway::wire {

class FloodGuard {
 public:
  enum class Frame {
    kReset,     // RST_STREAM of the client before its answer has begun, or provoked by it
    kPing,      // not an answer to ours
    kSettings,  // not an answer to ours
    kEmpty,     // DATA without bytes that does not end its stream
    kPriority,
    kWindowUpdate,
  };

  /// Counts a received frame. False: there were too many of its kind.
  [[nodiscard]] bool allows(Frame frame, Instant now);

  void on_stream_opened() { ++streams_; }

  void on_data_received() { empty_in_a_row_ = 0; }

  void on_data_sent() { ++data_sent_; }

 private:
  // Full from the beginning of time.
  TokenBucket resets_{BucketKind::kContinuous, 20, 200, Instant{}};
  TokenBucket pings_{BucketKind::kContinuous, 10, 100, Instant{}};
  TokenBucket settings_{BucketKind::kContinuous, 0.5, 5, Instant{}};
  std::uint64_t streams_ = 0;
  std::uint64_t data_sent_ = 0;
  std::uint64_t priorities_ = 0;
  std::uint64_t window_updates_ = 0;
  int empty_in_a_row_ = 0;
};

/// The name in metrics and logs: "resets".
std::string_view to_string(FloodGuard::Frame frame);

}  // namespace spillway::wire
