// A sink that says how much of a stream still waits for its client, so that a source can keep pace. Thread: loop.
#pragma once

#include "api/exchange/exchange.h"

#include <cstddef>

namespace spillway::api {

class PacedSink : public ResponseSink {
 public:
  /// Bytes that were written and that the client has not taken yet.
  virtual std::size_t waiting_bytes() const = 0;
};

/// 0 of a sink that does not say.
inline std::size_t waiting_bytes(const ResponseSink& sink) {
  const auto* paced = dynamic_cast<const PacedSink*>(&sink);
  return paced == nullptr ? 0 : paced->waiting_bytes();
}

}  // namespace spillway::api
