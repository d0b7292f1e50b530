// One client's HTTP/2 connection to an HttpServer: requests beside each other, each with its stream.
// Thread: the connection's loop, always. Bounds: http_limits.h, Http2Bounds; streams that are answered or that the
// handler still works on, twice as many as may be open. Source: RFC 9113; spec "HTTP/2", 2-5.
#pragma once

#include "base/time.h"
#include "runtime/loop.h"
#include "wire/http2/http2_session.h"
#include "wire/net/byte_stream.h"
#include "wire/net/socket_writer.h"
#include "wire/server/bounds/stall_watch.h"
#include "wire/server/client_connection.h"
#include "wire/server/http_exchange.h"
#include "wire/server/output/answer_body.h"
#include "wire/server/request_intake.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::wire {

class Http2Connection final : public ClientConnection,
                              public AnswerTaker,
                              public std::enable_shared_from_this<Http2Connection>,
                              private Http2Session::Handler,
                              private SocketWriter::Source {
 public:
  /// `stream`: data may flow, and HTTP/2 was agreed on. `address`: where the client is.
  Http2Connection(std::uint64_t id, ConnectionOwner& owner, std::unique_ptr<ByteStream> stream, std::string address);
  ~Http2Connection() override;
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

  enum class Phase { kOpen, kLinger, kClosed };

  struct Stream {
    explicit Stream(const HttpLimits& limits) : stall(limits) {}

    std::optional<api::Request> request;  // until it is handed over, or refused
    UserPtr user;                         // as long as the request
    std::shared_ptr<HttpExchange> exchange;
    api::Method method = api::Method::kGet;
    bool gzip_offered = false;
    bool streams = false;              // without an end of its own
    std::shared_ptr<GzipStream> gzip;  // compresses an answer in pieces
    bool answered = false;             // nothing more is added to the body
    bool goes_away = false;            // with the answer: the client has to reconnect
    std::size_t accounted = 0;
    std::optional<Instant> body_due;  // deadline of the request's body
    AnswerBody body;
    std::int64_t taken_bytes = 0;  // bytes of the body that the client has taken
    StallWatch stall;
  };

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
  void look_again();
  bool feed(std::string_view bytes);

  Stream& open(StreamId id, const api::Request& head);
  Stream* find(StreamId id);
  /// The stream that waits for this answer; null: it is no more.
  Stream* waiting_for(const std::shared_ptr<HttpExchange>& exchange);
  bool works_on_too_many();
  void dispatch(StreamId id, Stream& stream);
  void refuse(StreamId id, Stream& stream, const Error& error);
  /// `user`: the sender; null: unknown.
  void refuse(StreamId id, Stream& stream, const api::Request& head, const api::UserInfo* user, const Error& error,
              std::optional<int> http_status = std::nullopt);
  void send_answer(StreamId id, Stream& stream, Answer answer);
  void send_answer(StreamId id, Stream& stream, api::Response response);
  void send_head(StreamId id, api::Response& head, Http2Session::Body body);
  void drop_exchange(Stream& stream);
  void end_stream(StreamId id, Stream& stream);
  void take(const Stream& stream, std::size_t bytes);
  [[nodiscard]] bool account(Stream& stream, std::size_t held);

  void flush();
  void flush_at_end();
  void after_turn();
  void linger();
  void look_at_streams(Instant now);
  void arm_timer();
  void on_timer();
  void update_interest();

  std::uint64_t id_;
  ConnectionOwner& owner_;
  std::unique_ptr<ByteStream> stream_;
  RequestIntake intake_;
  Http2Session session_;
  SocketWriter writer_;
  StallWatch stall_;
  Phase phase_ = Phase::kOpen;
  short interest_ = 0;
  bool input_wants_write_ = false;  // TLS, before it can read on
  bool failed_ = false;             // nothing more can be sent
  bool flush_due_ = false;          // at the end of the turn
  std::uint64_t requests_ = 0;
  std::size_t lingered_bytes_ = 0;

  std::map<StreamId, Stream> streams_;
  std::vector<std::weak_ptr<HttpExchange>> abandoned_;  // exchanges on which the handler may still work

  Instant heard_{};                    // when the client was last heard
  Instant idle_since_{};               // if no stream is open
  bool told_to_go_ = false;            // because it was idle
  std::optional<Instant> head_since_;  // since when a head is incomplete
  bool pinged_ = false;                // since heard_
  std::optional<Instant> deadline_;    // the end of the phase, or of an idle connection
  std::optional<Instant> timer_due_;
  runtime::Loop::TimerId timer_ = 0;
};

}  // namespace spillway::wire
