// A connection of an HttpClient over HTTP/2: exchanges beside each other, each with its own flow. A server that is
// silent while exchanges are under way gets a ping, and has a while to answer. Thread: the client's loop. Bounds:
// Http2Bounds; a paused exchange holds as many bytes as its window has. Source: RFC 9113; spec "HTTP/2", 8.
#pragma once

#include "api/exchange/exchange.h"
#include "base/time.h"
#include "runtime/loop.h"
#include "wire/client/exchange_carrier.h"
#include "wire/http2/http2_client_session.h"
#include "wire/net/byte_stream.h"
#include "wire/net/socket_writer.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::wire {

/// The time that a server may be silent while exchanges are under way, before it gets a ping, and the time to answer
/// that.
struct Http2Patience {
  Duration silence_max = seconds(30);
  Duration ping_answer_max = seconds(15);
};

class Http2ClientConnection final : public ExchangeCarrier,
                                    public std::enable_shared_from_this<Http2ClientConnection>,
                                    private Http2ClientSession::Handler,
                                    private SocketWriter::Source {
 public:
  /// `stream`: ready for data, with HTTP/2 negotiated. `id`: the owner's number.
  Http2ClientConnection(runtime::Loop& loop, std::uint64_t id, Owner& owner, std::unique_ptr<ByteStream> stream,
                        Http2Patience patience);
  ~Http2ClientConnection() override;
  Http2ClientConnection(const Http2ClientConnection&) = delete;
  Http2ClientConnection& operator=(const Http2ClientConnection&) = delete;

  void start();

  void carry(std::uint64_t exchange, Question question) override;
  void cancel(std::uint64_t exchange) override;
  void pause(std::uint64_t exchange, bool paused) override;

  void write(std::uint64_t, std::string_view) override {}  // HTTP/2 connections are never upgraded

  void close() override { end(); }

  std::size_t exchanges_max() const override;

  bool is_closed() const override { return closed_; }

 private:
  using StreamId = Http2ClientSession::StreamId;

  struct Exchange {
    std::uint64_t id = 0;
    StreamId stream = 0;
    bool head_seen = false;
    bool paused = false;
    std::string held;    // bytes that arrived while the exchange was paused
    bool ended = false;  // while something was held
    std::optional<Failure> failure;
  };

  // Http2ClientSession::Handler
  void on_head(StreamId stream, api::Response head) override;
  void on_body(StreamId stream, std::string_view bytes) override;
  void on_end(StreamId stream, std::optional<Http2ClientSession::Failure> failure) override;

  // SocketWriter::Source
  std::size_t fill(std::string& ready) override;

  /// Null: the exchange was dropped.
  Exchange* find(StreamId stream);
  void finish(std::uint64_t exchange, std::optional<Failure> failure);
  /// Reports the bytes that were held while the exchange was paused.
  void release(std::uint64_t exchange);
  void on_ready();
  void receive();
  void requeue();
  void flush();
  void flush_at_end();
  void after_turn();
  void break_off(const std::string& problem);
  void end();
  void arm_timer();
  void stop_timer();
  void on_timer();
  void update_interest();

  runtime::Loop& loop_;
  const std::uint64_t id_;
  Owner& owner_;
  const Http2Patience patience_;
  std::unique_ptr<ByteStream> stream_;
  Http2ClientSession session_;
  SocketWriter writer_;
  bool closed_ = false;
  bool failed_ = false;  // nothing more can be sent
  bool flush_due_ = false;
  bool input_wants_write_ = false;
  short interest_ = 0;
  std::size_t exchanges_max_ = 0;  // as reported to the owner

  std::map<std::uint64_t, Exchange> exchanges_;
  std::map<StreamId, std::uint64_t> streams_;  // streams whose end the session has not reported

  Instant last_received_{};        // time of the last bytes from the server
  std::optional<Instant> pinged_;  // since
  std::optional<runtime::Loop::TimerId> timer_;
};

}  // namespace spillway::wire
