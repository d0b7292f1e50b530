// One client's HTTP/1.1 connection to an HttpServer: requests one after the other, their answers.
// Thread: the connection's loop, always. Bounds: http_limits.h; one request at a time, up to kPipelinedMax bytes of
// later ones wait.
#pragma once

#include "base/time.h"
#include "runtime/loop.h"
#include "wire/http/http_head.h"
#include "wire/http/http_parser.h"
#include "wire/net/byte_stream.h"
#include "wire/net/socket_writer.h"
#include "wire/server/bounds/stall_watch.h"
#include "wire/server/client_connection.h"
#include "wire/server/http_exchange.h"
#include "wire/server/output/output_queue.h"
#include "wire/server/request_intake.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace spillway::wire {

class HttpConnection final : public ClientConnection,
                             public AnswerTaker,
                             public std::enable_shared_from_this<HttpConnection> {
 public:
  static constexpr std::size_t kPipelinedMax = std::size_t{64} * 1024;
  /// Bound for an upgraded connection: bytes that were read and that the handler has not used.
  static constexpr std::size_t kInputMax = std::size_t{256} * 1024;

  /// `stream`: data may flow. `address`: where the client is.
  HttpConnection(std::uint64_t id, ConnectionOwner& owner, std::unique_ptr<ByteStream> stream, std::string address);
  ~HttpConnection() override;
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

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
  void on_input_room(const std::shared_ptr<HttpExchange>& exchange) override;

 private:
  enum class Phase { kIdle, kHeader, kBody, kAnswer, kLinger, kClosed };

  /// The current request, from the end of its head until its answer is sent.
  struct CurrentRequest {
    /// The way in which the body of the answer is sent.
    enum class AnswerBody { kWhole, kChunks, kUntilEnd };

    std::optional<Result<UserPtr>> user;  // the sender, until the request is dispatched
    std::shared_ptr<HttpExchange> exchange;
    std::size_t body_bytes = 0;
    api::Method method = api::Method::kGet;
    bool keep_alive = true;
    bool http_1_0 = false;
    bool gzip_offered = false;
    bool continue_sent = false;
    bool refused = false;  // not read completely
    AnswerBody body = AnswerBody::kWhole;
    bool in_pieces = false;            // the stream is a whole answer, which has an end of its own
    std::shared_ptr<GzipStream> gzip;  // compresses the current stream
    bool answered = false;             // the answer is queued whole
    bool upgraded = false;             // the following bytes are not HTTP

    bool streams() const { return body != AnswerBody::kWhole && !in_pieces; }
  };

  void on_ready();

  void receive();
  bool wants_input() const;
  void pass_input(std::string_view bytes);
  void on_end_of_input();
  void requeue();
  void parse();
  bool authenticate();
  void dispatch();
  void refuse(const Error& error, std::optional<int> http_status);
  /// Sends an answer of the connection itself, without the handler. `user`: the sender; null: unknown.
  void deny(const api::Request& head, const api::UserInfo* user, api::Response answer);
  void send_answer(api::Response response);
  void send_answer(Answer answer);
  void put_answer(Answer answer);
  std::string head_of(api::Response& response, Framing framing, std::size_t body_bytes);

  void flush();
  void flush_at_end();
  void on_drained();
  enum class Unread { kNothing, kRest };  // unread bytes of the last request
  void linger(Unread unread);

  void drop_exchange();
  void end_stream();
  void update_account();
  void enter(Phase phase);
  void arm_timer();
  void on_timer();
  void update_interest();

  std::uint64_t id_;
  ConnectionOwner& owner_;
  std::unique_ptr<ByteStream> stream_;
  RequestIntake intake_;
  Phase phase_ = Phase::kIdle;
  short interest_ = 0;
  bool input_wants_write_ = false;  // TLS must write before it can continue to read
  bool end_of_input_ = false;
  bool flush_due_ = false;  // at the end of the turn

  std::string input_;
  RequestParser parser_;
  std::size_t accounted_ = 0;
  std::size_t lingered_bytes_ = 0;
  std::uint64_t requests_ = 0;
  CurrentRequest current_;

  OutputQueue output_;
  SocketWriter writer_;
  StallWatch stall_;

  std::optional<Instant> phase_deadline_;
  std::optional<Instant> timer_due_;
  runtime::Loop::TimerId timer_ = 0;
};

}  // namespace spillway::wire
