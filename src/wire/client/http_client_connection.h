// A connection of an HttpClient over HTTP/1.1: one exchange at a time. Thread: the client's loop. Life: start() →
// carry() … on_end() → carry() … until it has closed itself or close().
#pragma once

#include "api/exchange/exchange.h"
#include "runtime/loop.h"
#include "wire/client/exchange_carrier.h"
#include "wire/http/http_parser.h"
#include "wire/net/byte_stream.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::wire {

class HttpClientConnection final : public ExchangeCarrier, public std::enable_shared_from_this<HttpClientConnection> {
 public:
  /// `stream`: ready for data. `id`: the owner's number.
  HttpClientConnection(runtime::Loop& loop, std::uint64_t id, Owner& owner, std::unique_ptr<ByteStream> stream)
      : loop_(loop), id_(id), owner_(owner), stream_(std::move(stream)) {}

  ~HttpClientConnection() override { end(); }

  HttpClientConnection(const HttpClientConnection&) = delete;
  HttpClientConnection& operator=(const HttpClientConnection&) = delete;

  void start();

  /// For a request of an upgrade: after an answer 101 all input is data, and write() sends unframed.
  void carry(std::uint64_t exchange, Question question) override;
  void cancel(std::uint64_t exchange) override;
  void pause(std::uint64_t exchange, bool paused) override;
  void write(std::uint64_t exchange, std::string_view bytes) override;

  void close() override { end(); }

  std::size_t exchanges_max() const override { return closed_ ? 0 : 1; }

  bool is_closed() const override { return closed_; }

 private:
  bool busy() const { return parser_ != nullptr; }

  void on_ready();
  void flush();
  void receive();
  void feed();
  void finish(std::optional<Failure> failure);
  void break_off(std::string problem);
  void end();
  void update_interest();

  runtime::Loop& loop_;
  const std::uint64_t id_;
  Owner& owner_;
  std::unique_ptr<ByteStream> stream_;
  bool closed_ = false;
  short interest_ = 0;

  std::string output_;
  std::size_t sent_ = 0;
  bool write_waits_ = false;
  bool write_wants_read_ = false;
  bool read_wants_write_ = false;
  bool paused_ = false;

  std::string input_;
  std::uint64_t exchange_ = 0;              // the current exchange
  std::unique_ptr<ResponseParser> parser_;  // parses the answer
  bool head_reported_ = false;
  bool touched_ = false;
  bool may_upgrade_ = false;
  bool upgraded_ = false;
  std::size_t unreported_ = 0;  // bytes of write() that have not been reported as written
};

}  // namespace spillway::wire
