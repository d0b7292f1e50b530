// What a connection has to send, encoded piece by piece as its socket takes it: heads, bodies, chunks of streams.
// Thread: the connection's loop. Bounds: 64 KiB are encoded at once and 512 KiB in one flush(); how much waits is
// bounded by who adds it (ByteLedger). Source: RFC 9112, 7.1.
#pragma once

#include "wire/http/gzip_stream.h"
#include "wire/net/byte_stream.h"
#include "wire/server/byte_ledger.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

namespace spillway::wire {

class OutputQueue {
 public:
  /// Bytes to send, a slice at a time. `charge` is held until they have left.
  struct Piece {
    std::shared_ptr<const std::string> data;
    bool as_chunks = false;
    bool of_stream = false;            // counted in Flushed::stream_bytes
    std::unique_ptr<GzipStream> gzip;  // compresses on the way; the piece is then a whole chunked body
    ByteLedger::Charge charge = {};
    std::size_t taken = 0;  // bytes of data already encoded
  };

  /// What holds the output up.
  enum class Wait {
    kNothing,
    kWritable,  // the socket takes no more, or the other connections of the thread have their turn
    kReadable,  // TLS wants to read first
  };

  struct Flushed {
    bool failed = false;           // the connection is unusable
    std::size_t stream_bytes = 0;  // of streams, which the socket has now
  };

  explicit OutputQueue(ByteStream& stream) : stream_(stream) {}

  void add(std::string text) { add(Piece{.data = std::make_shared<const std::string>(std::move(text)), .gzip = {}}); }

  void add(Piece piece) { pieces_.push_back(std::move(piece)); }

  void clear() { pieces_.clear(); }

  /// Sends what the socket takes.
  Flushed flush();

  /// Of the last flush().
  Wait waits() const { return waits_; }

  bool empty() const { return pieces_.empty() && sent_ == sending_.size(); }

  /// What the client's system has taken. The bytes of TLS are left out, so only differences count.
  std::int64_t taken_bytes() const;

 private:
  void fill();
  void encode_slice(Piece& piece);

  ByteStream& stream_;
  std::deque<Piece> pieces_;
  std::string sending_;  // encoded front of the pieces
  std::size_t sent_ = 0;
  std::size_t sending_stream_bytes_ = 0;
  std::size_t encoded_bytes_ = 0;  // in this flush
  Wait waits_ = Wait::kNothing;
  std::uint64_t written_bytes_ = 0;
};

}  // namespace spillway::wire
