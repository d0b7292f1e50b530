// A server's side of one HTTP/2 connection as a state machine without I/O: bytes in, requests out; answers in, bytes
// out. Streams, header compression, flow control in both directions, and the limits against clients that make work.
// Thread: one at a time; no call from within a call of the Handler may feed() or pull(). Source: RFC 9113, RFC 7541,
// RFC 9218; spec "HTTP/2", 3-5.
#pragma once

#include "api/exchange/exchange.h"
#include "base/time.h"
#include "wire/http2/flood_guard.h"
#include "wire/http2/http2_types.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::wire {

class Http2Session {
 public:
  using StreamId = Http2StreamId;
  using Code = Http2Code;
  using BodyPart = Http2BodyPart;

  enum class Body { kNone, kFollows };

  /// The priority of an answer in the connection: a lower urgency is sent first; incremental ones take turns.
  struct Priority {
    std::uint32_t urgency = 3;  // 0 to 7
    bool incremental = true;
  };

  class Handler {
   public:
    virtual ~Handler() = default;
    /// The head of a request is complete.
    virtual void on_head(StreamId stream, api::Request head, Body body) = 0;
    /// The head was too large; nevertheless the request must be answered.
    virtual void on_large_head(StreamId stream, api::Request head) = 0;
    /// Bytes of a body, which count against the client's window until consumed().
    virtual void on_body(StreamId stream, std::string_view bytes) = 0;
    /// A body is complete. Not called for a request without one.
    virtual void on_body_end(StreamId stream) = 0;
    /// The stream is no more, complete or not.
    virtual void on_stream_closed(StreamId stream) = 0;
    /// The next `max` bytes at most of the body of an answer. They stay valid until on_body_sent().
    virtual BodyPart next_body(StreamId stream, std::size_t max) = 0;
    virtual void on_body_sent(StreamId stream, std::size_t bytes) = 0;
  };

  Http2Session(Handler& handler, const Http2Bounds& bounds);
  ~Http2Session();
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  /// False: the peer does not speak HTTP/2; pending output need not be sent.
  [[nodiscard]] bool feed(std::string_view bytes, Instant now);
  /// Adds pending output to `out`, until that has `size` bytes or nothing is left. False: out of memory.
  [[nodiscard]] bool pull(std::string& out, std::size_t size);
  /// A head has begun and is not complete.
  bool awaits_head() const;
  /// The connection has nothing more to send or to receive, once the pulled bytes have left.
  bool is_over() const;
  /// The reason why we ended it, if it was because of frames of the client.
  std::optional<FloodGuard::Frame> flood() const;

  /// Sends the head of an answer; 100 precedes another one. With kFollows next_body() is called for the body.
  void respond(StreamId stream, const api::Response& head, Body body);
  /// Continues a body for which more bytes are ready.
  void resume(StreamId stream);
  void set_priority(StreamId stream, Priority priority);
  /// Bytes of a body were used, or dropped: the client may send as many more.
  void consume(StreamId stream, std::size_t bytes);
  void reset(StreamId stream, Code code);

  void ping();
  /// Accepts no new streams; the present ones continue.
  void submit_goaway();
  /// The connection ends as soon as the peer was sent this code.
  void terminate(Code code);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::wire
