// Sends the output of a connection, as fast as its socket accepts it. Thread: the connection's loop. Bounds: 64 KiB are
// made ready at once and 512 KiB in one flush(); the rest waits in the source.
#pragma once

#include "wire/net/byte_stream.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace spillway::wire {

class SocketWriter {
 public:
  /// Bytes joined before they are given to the socket.
  static constexpr std::size_t kReadyMax = std::size_t{64} * 1024;

  /// Port: the source of the bytes.
  class Source {
   public:
    virtual ~Source() = default;
    /// Adds to `ready`, which is empty, until it has about kReadyMax bytes. From how many bytes those were made; 0:
    /// there is nothing to send. A compressed body may need more before it gives any.
    virtual std::size_t fill(std::string& ready) = 0;

    /// The socket has taken all bytes that were filled.
    virtual void on_sent() {}
  };

  /// The reason why output waits.
  enum class Wait {
    kNothing,
    kWritable,  // the socket takes no more, or the other connections of the thread have their turn
    kReadable,  // TLS must read first
  };

  enum class Flushed { kOk, kFailed };  // kFailed: the connection is unusable

  SocketWriter(ByteStream& stream, Source& source) : stream_(stream), source_(source) {}

  SocketWriter(const SocketWriter&) = delete;
  SocketWriter& operator=(const SocketWriter&) = delete;

  /// Sends as much as the socket accepts.
  Flushed flush();

  /// The result of the last flush().
  Wait waits() const { return waits_; }

  /// True if the socket has taken all ready bytes. The source may have more.
  bool empty() const { return sent_ == ready_.size(); }

  /// The bytes that the client's system has taken. Those of TLS are left out, so only differences count.
  std::int64_t taken_bytes() const;

 private:
  ByteStream& stream_;
  Source& source_;
  std::string ready_;
  std::size_t sent_ = 0;
  Wait waits_ = Wait::kNothing;
  std::uint64_t written_bytes_ = 0;
};

}  // namespace spillway::wire
