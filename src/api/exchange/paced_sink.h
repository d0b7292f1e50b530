// A sink that reports how much of a stream still waits for its client, so that a source can keep pace; it may accept an
// answer in pieces, too. Thread: loop.
#pragma once

#include "api/exchange/exchange.h"

#include <cstddef>
#include <functional>
#include <utility>

namespace spillway::api {

class PacedSink : public ResponseSink {
 public:
  /// Bytes that were written and that the client has not taken yet.
  virtual std::size_t waiting_bytes() const = 0;

  /// Calls `act` once when no more than `bytes` wait, at once if that is so already; never of a client that has gone.
  /// The next call takes the place of one that waits.
  virtual void when_below(std::size_t /*bytes*/, std::function<void()> act) { act(); }

  /// True: a whole answer that is too large to be held at once may be given as on_pieces(), write() for each piece, and
  /// on_end(); or on_cut(), which the client can distinguish from an end.
  virtual bool takes_pieces() const { return false; }

  virtual void on_pieces(Response head) { on_stream(std::move(head)); }

  virtual void on_cut() { on_end(); }
};

/// Null: the sink is not paced.
inline PacedSink* paced(ResponseSink& sink) {
  return dynamic_cast<PacedSink*>(&sink);
}

/// The waiting bytes; 0 if the sink is not paced.
inline std::size_t waiting_bytes(const ResponseSink& sink) {
  const auto* paced = dynamic_cast<const PacedSink*>(&sink);
  return paced == nullptr ? 0 : paced->waiting_bytes();
}

}  // namespace spillway::api
