// One connection of an HttpClient: connects, carries one exchange at a time, reports what becomes of it.
// Thread: the client's loop. Life: connect() → send() … on_complete() → send() … until on_broken() or close().
#pragma once

#include "api/exchange/exchange.h"
#include "runtime/loop.h"
#include "wire/client/http_client.h"
#include "wire/http/http_parser.h"
#include "wire/net/byte_stream.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::wire {

class HttpClientConnection final : public std::enable_shared_from_this<HttpClientConnection> {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    /// Connected, handshake done.
    virtual void on_open(HttpClientConnection& connection) = 0;
    virtual void on_head(HttpClientConnection& connection, const api::Response& head) = 0;
    virtual void on_data(HttpClientConnection& connection, std::string data) = 0;
    /// What was given to write() has left.
    virtual void on_written(HttpClientConnection& connection, std::size_t bytes) = 0;
    /// The answer is whole. `reusable`: the connection waits for another request; else it has closed itself.
    virtual void on_complete(HttpClientConnection& connection, bool reusable) = 0;
    /// The connection is closed. `untouched`: no byte of an answer had come.
    virtual void on_broken(HttpClientConnection& connection, std::string problem, bool untouched) = 0;
  };

  HttpClientConnection(runtime::Loop& loop, const HttpEndpoint& endpoint, Owner& owner)
      : loop_(loop), endpoint_(endpoint), owner_(owner) {}

  ~HttpClientConnection() { close(); }

  HttpClientConnection(const HttpClientConnection&) = delete;
  HttpClientConnection& operator=(const HttpClientConnection&) = delete;

  /// Tries the addresses in order. May report on_broken() at once.
  void connect(std::vector<std::string> addresses);
  /// One whole request; sent as soon as the connection is there.
  /// `upgrade`: it asks to leave HTTP. After an answer 101 all that comes is data, and write() sends as it is.
  void send(std::string request, api::Method method,
            ResponseParser::Upgrade upgrade = ResponseParser::Upgrade::kNotAsked);
  void write(std::string_view bytes);
  void pause(bool paused);
  /// Nothing is reported afterwards.
  void close();

  bool busy() const { return parser_ != nullptr; }

  /// Whether it has carried an exchange before the present one.
  bool used() const { return exchanges_ > 1; }

 private:
  enum class Phase { kNew, kConnecting, kHandshake, kOpen, kClosed };

  void connect_next();
  void on_ready();
  bool on_connected();
  bool shake_hands();
  /// Why the other end is not the one that is meant; nullopt: it is.
  std::optional<std::string> peer_problem() const;
  void flush();
  void receive();
  void feed();
  void break_off(std::string problem);
  void watch(int fd, short interest);
  void update_interest();

  runtime::Loop& loop_;
  const HttpEndpoint& endpoint_;
  Owner& owner_;
  Phase phase_ = Phase::kNew;

  std::vector<std::string> addresses_;
  std::size_t next_address_ = 0;
  Socket connecting_;
  std::unique_ptr<ByteStream> stream_;
  int watched_fd_ = -1;
  short interest_ = 0;

  std::string output_;
  std::size_t sent_ = 0;
  bool write_waits_ = false;
  bool write_wants_read_ = false;
  bool read_wants_write_ = false;
  bool handshake_wants_write_ = false;
  bool paused_ = false;

  std::string input_;
  std::unique_ptr<ResponseParser> parser_;  // of the exchange at hand
  bool head_reported_ = false;
  bool touched_ = false;
  int exchanges_ = 0;
  bool may_upgrade_ = false;
  bool upgraded_ = false;
  std::size_t unreported_ = 0;  // bytes of write() that have not been told as written
};

}  // namespace spillway::wire
