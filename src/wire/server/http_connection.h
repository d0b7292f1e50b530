// One client's connection to an HttpServer: handshake, requests one after the other, their answers.
// Thread: the connection's loop, always. Bounds: http_limits.h; one request at a time, up to kPipelinedMax bytes of
// later ones wait.
#pragma once

#include "base/time.h"
#include "runtime/loop.h"
#include "wire/http/http_head.h"
#include "wire/http/http_parser.h"
#include "wire/net/byte_stream.h"
#include "wire/server/http_exchange.h"
#include "wire/server/http_server.h"
#include "wire/server/output_queue.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace spillway::wire {

class HttpConnection final : public AnswerTaker, public std::enable_shared_from_this<HttpConnection> {
 public:
  /// What a connection needs of its server. Thread: the connection's, unless said otherwise.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual const std::shared_ptr<runtime::Loop>& loop() const = 0;
    virtual const HttpServer::Options& options() const = 0;
    /// Memory to read into, shared by the connections of the thread.
    virtual std::span<char> scratch() = 0;
    /// What the connection's client has shown. False: there is no place for it.
    virtual bool prove(std::uint64_t connection, ClientRank rank) = 0;
    /// Whether nothing is asked or answered on the connection.
    virtual void set_idle(std::uint64_t connection, bool idle) = 0;
    virtual const AnswerDesk& desk() const = 0;
    /// Passes a request to the handler; its answer comes back through the AnswerTaker calls. Else why it is refused.
    virtual std::optional<Refusal> deliver(std::shared_ptr<HttpExchange> exchange, api::Request request,
                                           api::UserInfo user, std::shared_ptr<HttpSink> sink) = 0;
    /// Tells the handler that nobody reads the answer.
    virtual void report_gone(std::shared_ptr<HttpExchange> exchange) = 0;
    /// `change` more (or fewer) bytes of requests are in memory. False: there are too many for a client of this rank.
    virtual bool account(std::ptrdiff_t change, ClientRank rank) = 0;
    virtual void count_slow_stream() = 0;
    /// A new Audit-Id.
    virtual std::string make_audit_id() = 0;
    /// The last call of a connection; it is destroyed soon after.
    virtual void on_closed(std::uint64_t connection) = 0;
  };

  static constexpr std::size_t kPipelinedMax = std::size_t{64} * 1024;

  /// `address`: where the client is.
  HttpConnection(std::uint64_t id, Owner& owner, std::unique_ptr<ByteStream> stream, std::string address);
  ~HttpConnection() override;
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  /// The last name its client has shown, or where it is.
  const std::string& client() const { return client_; }

  void start();
  /// Closes once the request at hand, if any, has been answered; ends a stream at once.
  void wind_down();
  /// Closes now.
  void close();

  void on_answer(const std::shared_ptr<HttpExchange>& exchange, Answer answer) override;
  void on_answer_stream(const std::shared_ptr<HttpExchange>& exchange, api::Response head) override;
  void on_answer_data(const std::shared_ptr<HttpExchange>& exchange, std::shared_ptr<const std::string> chunk,
                      ByteLedger::Charge charge) override;
  void on_answer_end(const std::shared_ptr<HttpExchange>& exchange) override;

 private:
  enum class Phase { kHandshake, kIdle, kHeader, kBody, kAnswer, kLinger, kClosed };

  /// From the end of a request's head until its answer has left.
  struct CurrentRequest {
    /// How the body of the answer is sent.
    enum class AnswerBody { kWhole, kChunks, kUntilEnd };

    std::optional<Result<api::UserInfo>> user;  // who sent it, until it is dispatched
    std::shared_ptr<HttpExchange> exchange;
    std::size_t body_bytes = 0;
    api::Method method = api::Method::kGet;
    bool keep_alive = true;
    bool http_1_0 = false;
    bool gzip_offered = false;
    bool continue_sent = false;
    bool refused = false;  // it was not taken in whole
    AnswerBody body = AnswerBody::kWhole;
    bool answered = false;  // the answer is queued whole

    bool streams() const { return body != AnswerBody::kWhole; }
  };

  void on_ready();
  bool shake_hands();

  void receive();
  bool wants_input() const;
  void on_end_of_input();
  void look_again();
  void parse();
  bool authenticate();
  bool prove(ClientRank rank);
  bool is_too_large(std::size_t body_bytes) const;
  void refuse_body();
  void dispatch();
  void refuse(const Error& error, std::optional<int> http_status);
  void send_answer(api::Response response);
  void send_answer(Answer answer);
  std::string head_of(api::Response& response, Framing framing, std::size_t body_bytes);

  void flush();
  void watch_progress();
  bool is_stalled(Instant now);
  void on_drained();
  enum class Unread { kNothing, kRest };  // of the last request
  void linger(Unread unread);

  void drop_exchange();
  void settle_account();
  void enter(Phase phase);
  void arm_timer();
  void on_timer();
  void update_interest();

  std::uint64_t id_;
  Owner& owner_;
  std::unique_ptr<ByteStream> stream_;
  std::string address_;
  std::optional<PeerCertificate> peer_;
  ClientRank rank_ = ClientRank::kUnproven;  // what it has shown so far
  std::string client_;                       // the last name it has shown, or its address
  Phase phase_ = Phase::kHandshake;
  short interest_ = 0;
  bool input_wants_write_ = false;  // TLS, before it can read on
  bool end_of_input_ = false;

  std::string input_;
  RequestParser parser_;
  std::size_t accounted_ = 0;
  std::size_t lingered_bytes_ = 0;
  std::uint64_t requests_ = 0;
  CurrentRequest current_;

  OutputQueue output_;
  Instant watched_since_{};        // the client's progress, while output waits
  std::int64_t taken_before_ = 0;  // at watched_since_

  std::optional<Instant> phase_deadline_;
  std::optional<Instant> write_deadline_;
  std::optional<Instant> timer_due_;
  runtime::Loop::TimerId timer_ = 0;
};

}  // namespace spillway::wire
