// The body of one answer on its way out, piece by piece, compressed on the way where that was agreed.
// Thread: the connection's loop. Bounds: the caller of add() bounds the waiting bytes (ByteLedger).
#pragma once

#include "wire/http/gzip_stream.h"
#include "wire/server/bounds/byte_ledger.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::wire {

class AnswerBody {
 public:
  struct Piece {
    std::shared_ptr<const std::string> data;
    bool of_stream = false;            // counted by take(), or where it is compressed by take_packed_stream_bytes()
    bool ends_stream = false;          // the last of those that share their gzip
    std::shared_ptr<GzipStream> gzip;  // without of_stream the piece is a whole body
    ByteLedger::Charge charge = {};
    std::size_t taken = 0;
  };

  void add(Piece piece) { pieces_.push_back(std::move(piece)); }

  bool empty() const { return pieces_.empty() && packed_taken_ == packed_.size(); }

  struct Part {
    std::string_view bytes;  // empty: no bytes are available yet
    bool last = false;       // these are the last bytes added so far
  };

  /// The next bytes, at most `max`; valid until take().
  Part next(std::size_t max);
  /// Takes so many bytes off the front; returns the number of those that belong to a stream.
  std::size_t take(std::size_t bytes);

  /// Bytes of compressed streams that the compression has consumed since the last call. It may keep megabytes of text
  /// before it gives a byte.
  std::size_t take_packed_stream_bytes() { return std::exchange(packed_stream_bytes_, 0); }

  /// Drops all waiting bytes.
  void clear();

 private:
  std::deque<Piece> pieces_;
  std::string packed_;  // the front piece, compressed
  std::size_t packed_taken_ = 0;
  std::size_t packed_stream_bytes_ = 0;
};

}  // namespace spillway::wire
