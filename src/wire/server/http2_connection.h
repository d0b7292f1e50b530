// One client's HTTP/2 connection to an HttpServer: what it reads and writes, its frames, its end, and the requests that
// run beside each other, each on its stream (http2_streams.h).
// Thread: the connection's loop, always. Bounds: http_limits.h, Http2Bounds. Source: RFC 9113; spec "HTTP/2", 2-5.
#pragma once

#include "base/time.h"
#include "runtime/loop.h"
#include "wire/http2/http2_session.h"
#include "wire/net/byte_stream.h"
#include "wire/net/socket_writer.h"
#include "wire/server/bounds/stall_watch.h"
#include "wire/server/client_connection.h"
#include "wire/server/http2_streams.h"
#include "wire/server/http_exchange.h"
#include "wire/server/request_intake.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::wire {

class Http2Connection final : public ClientConnection,
                              public AnswerTaker,
                              public std::enable_shared_from_this<Http2Connection>,
                              private Http2Session::Handler,
                              private SocketWriter::Source {
 public:
  /// `stream`: data may flow, and HTTP/2 was agreed on. `address`: where the client is.
  Http2Connection(std::uint64_t id, ConnectionOwner& owner, std::unique_ptr<ByteStream> stream, std::string address);
  ~Http2Connection() override = default;
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;

  const std::string& client() const override { return intake_.client(); }

  void start() override;
  void wind_down() override;
  void close() override;

  void on_answer(const std::shared_ptr<HttpExchange>& exchange, Answer answer) override;
  void on_answer_stream(const std::shared_ptr<HttpExchange>& exchange, api::Response head) override;
  void on_answer_data(const std::shared_ptr<HttpExchange>& exchange, std::shared_ptr<const std::string> chunk,
                      ByteLedger::Charge charge) override;
  void on_answer_end(const std::shared_ptr<HttpExchange>& exchange) override;
  void on_answer_cut(const std::shared_ptr<HttpExchange>& exchange) override;
  void on_answer_upgrade(const std::shared_ptr<HttpExchange>& exchange, api::Response head) override;

  void on_input_room(const std::shared_ptr<HttpExchange>&) override {}  // nothing is upgraded here

 private:
  using StreamId = Http2Session::StreamId;
  using Stream = Http2Streams::Stream;

  enum class Phase { kOpen, kLinger, kClosed };

  // Http2Session::Handler
  void on_head(StreamId id, api::Request head, Http2Session::Body body) override;
  void on_large_head(StreamId id, api::Request head) override;
  void on_body(StreamId id, std::string_view bytes) override;
  void on_body_end(StreamId id) override;
  void on_stream_closed(StreamId id) override;
  Http2Session::BodyPart next_body(StreamId id, std::size_t max) override;
  void on_body_sent(StreamId id, std::size_t bytes) override;

  // SocketWriter::Source
  std::size_t fill(std::string& ready) override;

  void on_ready();
  void receive();
  void requeue();
  bool feed(std::string_view bytes);

  Stream& open(StreamId id, const api::Request& head);
  /// As Http2Streams::waiting_for(); null also when no more answers are sent.
  Stream* waiting_for(const std::shared_ptr<HttpExchange>& exchange);
  void dispatch(StreamId id, Stream& stream);
  void refuse(StreamId id, Stream& stream, const Error& error);
  /// `user`: the sender; null: unknown.
  void refuse(StreamId id, Stream& stream, const api::Request& head, const api::UserInfo* user, const Error& error,
              std::optional<int> http_status = std::nullopt);
  void send_answer(StreamId id, Stream& stream, Answer answer);
  void send_answer(StreamId id, Stream& stream, api::Response response);
  void send_head(StreamId id, api::Response& head, Http2Session::Body body);
  void end_stream(StreamId id, Stream& stream);

  void flush();
  void flush_at_end();
  void after_turn();
  void linger();
  void check_streams(Instant now);
  void arm_timer();
  void on_timer();
  void update_interest();

  std::uint64_t id_;
  ConnectionOwner& owner_;
  std::unique_ptr<ByteStream> stream_;
  RequestIntake intake_;
  Http2Streams streams_;
  Http2Session session_;
  SocketWriter writer_;
  StallWatch stall_;
  Phase phase_ = Phase::kOpen;
  short interest_ = 0;
  bool input_wants_write_ = false;  // TLS must write before it can continue to read
  bool failed_ = false;             // nothing more can be sent
  bool flush_due_ = false;          // at the end of the turn
  std::uint64_t requests_ = 0;
  std::size_t lingered_bytes_ = 0;

  Instant last_received_{};            // time of the last bytes from the client
  Instant idle_since_{};               // if no stream is open
  bool goaway_sent_ = false;           // the connection was idle
  std::optional<Instant> head_since_;  // since when a head is incomplete
  bool pinged_ = false;                // since last_received_
  std::optional<Instant> deadline_;    // the end of the phase, or of an idle connection
  std::optional<Instant> timer_due_;
  runtime::Loop::TimerId timer_ = 0;
};

}  // namespace spillway::wire
