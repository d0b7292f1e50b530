// The open streams of one HTTP/2 connection: the request of each as it arrives, the exchange that waits for its answer,
// the answer that waits for the client, and the bytes that the server has counted for it.
// Thread: the connection's loop, always. Bounds: Http2Bounds::streams_max open streams, and as many that the client has
// taken back while the handler still works on them; the bytes of requests are ConnectionOwner's.
// Source: RFC 9113, 5; spec "HTTP/2", 2-5.
#pragma once

#include "base/time.h"
#include "wire/http/gzip_stream.h"
#include "wire/http2/http2_session.h"
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
#include <utility>
#include <vector>

namespace spillway::wire {

class Http2Streams {
 public:
  using StreamId = Http2Session::StreamId;

  struct Stream {
    explicit Stream(const HttpLimits& limits) : stall(limits) {}

    std::optional<api::Request> request;  // kept until it is passed on or refused
    UserPtr user;                         // as long as the request
    std::shared_ptr<HttpExchange> exchange;
    api::Method method = api::Method::kGet;
    bool gzip_offered = false;
    bool streams = false;              // the answer has no end of its own
    std::shared_ptr<GzipStream> gzip;  // compresses an answer in pieces
    bool answered = false;             // nothing more is added to the body
    bool goes_away = false;            // with the answer: the client has to reconnect
    std::size_t accounted = 0;
    std::optional<Instant> body_due;  // deadline of the request's body
    AnswerBody body;
    std::int64_t taken_bytes = 0;  // bytes of the body that the client has taken
    StallWatch stall;
  };

  /// A stream that has waited too long for its client.
  struct Overdue {
    StreamId id;
    Refusal refusal;
  };

  /// `owner` and `intake`, those of the connection, outlive the streams.
  Http2Streams(ConnectionOwner& owner, const RequestIntake& intake) : owner_(owner), intake_(intake) {}

  /// Handlers that still answer are notified that the client has disconnected.
  ~Http2Streams();
  Http2Streams(const Http2Streams&) = delete;
  Http2Streams& operator=(const Http2Streams&) = delete;

  bool empty() const { return open_.empty(); }

  auto begin() { return open_.begin(); }

  auto end() { return open_.end(); }

  Stream& open(StreamId id, const api::Request& head);

  /// Null: no such stream is open.
  Stream* find(StreamId id);

  /// The stream that waits for this answer; null: it is no more.
  Stream* waiting_for(const std::shared_ptr<HttpExchange>& exchange);

  /// True if the handler works on so many requests which the client has taken back that no more are accepted.
  bool works_on_too_many();

  /// Sets the bytes of the request that are in memory. False: the server holds too many.
  [[nodiscard]] bool account(Stream& stream, std::size_t held);

  /// The client has received this number of bytes of the answer.
  void take(const Stream& stream, std::size_t bytes);

  /// Notifies the handler that the client does not want the answer, if one is still expected.
  void drop_exchange(Stream& stream);
  void drop_exchanges();

  /// The stream has ended, with or without its answer. False: it was not open.
  bool close(StreamId id);

  /// The connection is closed: no stream is counted or answered from now on.
  void close_all();

  /// Streams with bodies that do not arrive, and with answers that the client does not read.
  std::vector<Overdue> overdue(Instant now);

 private:
  ConnectionOwner& owner_;
  const RequestIntake& intake_;
  std::map<StreamId, Stream> open_;
  std::vector<std::weak_ptr<HttpExchange>> abandoned_;  // exchanges on which the handler may still work
  bool is_counted_ = true;                              // by the server: the connection is open
};

}  // namespace spillway::wire
