// A client's side of one HTTP/2 connection as a state machine without I/O: requests in, bytes out; bytes in, answers
// out. Thread: one at a time; no call from within a call of the Handler may feed() or pull(). Bounds: Http2Bounds; what
// a server may send that answers nothing, as for clients (flood_guard.h). Promised answers are refused. Source:
// RFC 9113; spec "HTTP/2", 8.
#pragma once

#include "api/exchange/exchange.h"
#include "base/time.h"
#include "wire/http2/flood_guard.h"
#include "wire/http2/http2_types.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::wire {

class Http2ClientSession {
 public:
  using StreamId = Http2StreamId;

  /// The reason why an answer is missing or incomplete.
  struct Failure {
    bool untouched = false;  // the server has not processed the request, or it was not sent
    std::string problem;
  };

  class Handler {
   public:
    virtual ~Handler() = default;
    /// The head of the answer, never a status of 1xx.
    virtual void on_head(StreamId stream, api::Response head) = 0;
    /// Bytes of a body: they hold up the server until they are consumed(). What one stream holds up holds up no other.
    virtual void on_body(StreamId stream, std::string_view bytes) = 0;
    /// The last of a stream that was not taken back.
    virtual void on_end(StreamId stream, std::optional<Failure> failure) = 0;
  };

  using Body = std::shared_ptr<const std::string>;

  Http2ClientSession(Handler& handler, const Http2Bounds& bounds);
  ~Http2ClientSession();
  Http2ClientSession(const Http2ClientSession&) = delete;
  Http2ClientSession& operator=(const Http2ClientSession&) = delete;

  /// False: the peer does not speak HTTP/2; pending output need not be sent.
  [[nodiscard]] bool feed(std::string_view bytes, Instant now);
  /// Adds pending output to `out`, until that has `size` bytes or nothing is left. False: out of memory.
  [[nodiscard]] bool pull(std::string& out, std::size_t size);
  /// The connection has nothing more to send or to receive, once the pulled bytes have left.
  bool is_over() const;
  /// The reason why we ended it, if it was because of frames of the server.
  std::optional<FloodGuard::Frame> flood() const;

  /// False once the server refuses new streams on this connection.
  bool takes_requests() const;
  /// The number of simultaneous streams that the server and the bounds allow.
  std::size_t streams_max() const;

  /// Sends a request; request.body is not used. `body`: null for none. nullopt: takes_requests() is false.
  std::optional<StreamId> ask(const api::Request& head, std::string_view authority, Body body);
  /// Bytes of a body were used: the peer may send as many more.
  void consume(StreamId stream, std::size_t bytes);
  /// Takes a request back: no event about it follows.
  void take_back(StreamId stream);
  void ping();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::wire
