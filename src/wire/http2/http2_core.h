// The common part of both ends of an HTTP/2 connection, as a state machine without I/O: bytes in and out, heads of
// messages as they arrive, bodies in both directions, and the limits against a peer that causes work. Only the sessions
// of this folder include it, and use nghttp2. Thread: one at a time. Source: RFC 9113, RFC 7541; spec "HTTP/2", 3-5, 8.
#pragma once

#include "api/exchange/exchange.h"
#include "base/time.h"
#include "wire/http2/flood_guard.h"
#include "wire/http2/http2_types.h"

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::wire {

class Http2Core {
 public:
  enum class Role { kServer, kClient };

  /// The head of a message, as far as it has arrived. Fields beyond the bounds are left out.
  struct Head {
    std::string method;  // set for a request
    std::string path;
    int status = 0;  // set for an answer
    api::HeaderList headers;
    std::size_t bytes = 0;
    std::size_t fields = 0;
    bool too_large = false;
  };

  /// Fields in nghttp2's form; points into the headers it was made from.
  class FieldList {
   public:
    /// Pseudo fields are first. Names become lower-case; fields that only HTTP/1.1 has are left out.
    void add(std::string_view name, std::string_view value);
    std::vector<nghttp2_nv> list();

   private:
    std::vector<std::pair<std::string, std::string>> fields_;
  };

  Http2Core(Role role, const Http2Bounds& bounds);
  virtual ~Http2Core() = default;
  Http2Core(const Http2Core&) = delete;
  Http2Core& operator=(const Http2Core&) = delete;

  [[nodiscard]] bool feed(std::string_view bytes, Instant now);
  [[nodiscard]] bool pull(std::string& out, std::size_t size);
  bool is_over() const;

  bool awaits_head() const { return !heads_.empty(); }

  std::optional<FloodGuard::Frame> flood() const { return flood_; }

  void reset(Http2StreamId stream, Http2Code code);
  void terminate(Http2Code code);

  nghttp2_session* raw() const { return session_.get(); }

 protected:
  /// True if the block of fields that begins is a head; else it is a trailer, which is not used.
  virtual bool begins_head(const nghttp2_frame& frame) = 0;
  virtual void on_head(Http2StreamId stream, Head head, bool ends) = 0;
  virtual void on_body(Http2StreamId stream, std::string_view bytes) = 0;
  /// A message that has not ended with its head has ended.
  virtual void on_message_end(Http2StreamId stream) = 0;
  virtual void on_stream_closed(Http2StreamId stream, std::uint32_t code) = 0;
  virtual Http2BodyPart next_body(Http2StreamId stream, std::size_t max) = 0;
  virtual void on_body_sent(Http2StreamId stream, std::size_t bytes) = 0;
  virtual void on_sent(const nghttp2_frame& frame) = 0;

  /// DATA of a stream that is open, with its padding.
  virtual void on_data_frame(std::size_t bytes) { static_cast<void>(bytes); }

  /// A provider for nghttp2 that takes the body of a message from next_body().
  static nghttp2_data_provider body_provider();

  FloodGuard& guard() { return guard_; }

 private:
  struct Callbacks;

  struct SessionFree {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };

  void count(FloodGuard::Frame frame);
  int add_field(Head& head, std::string_view name, std::string_view value);
  void on_frame(const nghttp2_frame& frame);

  const Http2Bounds bounds_;
  std::unique_ptr<nghttp2_session, SessionFree> session_;
  FloodGuard guard_;
  std::optional<FloodGuard::Frame> flood_;
  Instant now_{};  // the time of the feed() under way
  std::map<Http2StreamId, Head> heads_;
  std::set<Http2StreamId> answered_;  // open streams of a server whose answer has begun; as many as may be open
  std::string* out_ = nullptr;        // the output of the pull() under way
  std::string_view sending_;          // body bytes for the present frame
};

}  // namespace spillway::wire
