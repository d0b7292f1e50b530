// The output of an HTTP/1.1 connection, encoded piece by piece as its socket takes it: heads, bodies, chunks of
// streams. Thread: the connection's loop. Bounds: the caller of add() bounds the waiting bytes (ByteLedger).
// Source: RFC 9112, 7.1.
#pragma once

#include "wire/http/gzip_stream.h"
#include "wire/net/socket_writer.h"
#include "wire/server/bounds/byte_ledger.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace spillway::wire {

class OutputQueue final : public SocketWriter::Source {
 public:
  /// Bytes to send, a slice at a time. `charge` is held until they have left.
  struct Piece {
    std::shared_ptr<const std::string> data;
    bool as_chunks = false;
    bool of_stream = false;            // counted in take_sent_stream_bytes()
    bool ends_stream = false;          // the last of those that share their gzip
    std::shared_ptr<GzipStream> gzip;  // compresses on the way; without of_stream the piece is a whole chunked body
    ByteLedger::Charge charge = {};
    std::size_t taken = 0;  // bytes of data already encoded
  };

  void add(std::string text) { add(Piece{.data = std::make_shared<const std::string>(std::move(text)), .gzip = {}}); }

  void add(Piece piece) { pieces_.push_back(std::move(piece)); }

  void clear() { pieces_.clear(); }

  /// Bytes of streams that the socket has taken since the last call.
  std::size_t take_sent_stream_bytes() { return std::exchange(sent_stream_bytes_, 0); }

  std::size_t fill(std::string& ready) override;

  void on_sent() override { sent_stream_bytes_ += std::exchange(ready_stream_bytes_, 0); }

 private:
  void encode_slice(Piece& piece, std::string& ready);

  std::deque<Piece> pieces_;
  std::size_t ready_stream_bytes_ = 0;
  std::size_t sent_stream_bytes_ = 0;
};

}  // namespace spillway::wire
