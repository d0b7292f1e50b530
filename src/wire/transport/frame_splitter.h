// Cuts the body of a watch, one JSON document per line, into frames. Thread: one at a time.
// Source: spec "API server contract", 4.4, 9.6.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::wire {

class FrameSplitter {
 public:
  using Frame = std::shared_ptr<const std::string>;

  /// A line longer than `frame_bytes_max` is an error.
  explicit FrameSplitter(std::size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

  /// The frames that `data` completes, in order. kRequestEntityTooLarge: a line is too long; the stream is unusable.
  Result<std::vector<Frame>> push(std::string_view data);
  /// Splits a shared chunk; one that is exactly one line is passed on without copying.
  Result<std::vector<Frame>> push(const Frame& chunk);
  /// The text after the last line end, if it is more than blanks.
  Frame finish();

 private:
  std::size_t frame_bytes_max_;
  std::string partial_;
};

}  // namespace spillway::wire
