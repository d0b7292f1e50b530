// One client connection, HTTP/1.1 with keep-alive over a stream that does not block: one request at a time.
// Thread: one. Edge-triggered readiness: the owner of the epoll calls drive() on every event.
#pragma once

#include "wire/net/byte_stream.h"

#include "load/response_reader.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::load {

class Connection;

/// The user of connections. Calls may send() the next request from inside on_idle().
class ConnectionUser {
 public:
  virtual ~ConnectionUser() = default;
  /// A piece of the body of an answer.
  virtual void on_piece(Connection& connection, std::string_view piece) = 0;
  /// The answer is complete.
  virtual void on_answer(Connection& connection) = 0;
  /// The connection is open, or its answer was delivered: it takes a request.
  virtual void on_idle(Connection& connection) = 0;
  /// The connection is lost, and with it the request in flight.
  virtual void on_lost(Connection& connection, std::string_view why) = 0;
};

class Connection final : private ResponseReader::Receiver {
 public:
  Connection(std::size_t index, std::unique_ptr<wire::ByteStream> stream, ConnectionUser& user)
      : index(index), stream_(std::move(stream)), user_(user) {}

  /// The number given to the constructor.
  const std::size_t index;

  int fd() const { return stream_->socket().fd(); }

  /// HTTP code of the answer that is coming in or was last.
  int status() const { return status_; }

  bool lost() const { return state_ == State::kLost; }

  /// Sends a request. The connection must be idle.
  void send(std::string text);
  /// Reads and writes as much as is possible now.
  void drive();

 private:
  enum class State { kHandshake, kIdle, kBusy, kLost };

  void on_head(int status) override { status_ = status; }

  void on_body(std::string_view piece) override { user_.on_piece(*this, piece); }

  void on_end() override;

  bool flush();
  void read();
  void lose(std::string_view why);

  std::unique_ptr<wire::ByteStream> stream_;
  ConnectionUser& user_;
  ResponseReader reader_;
  State state_ = State::kHandshake;
  std::string output_;
  std::size_t written_ = 0;
  int status_ = 0;
};

}  // namespace spillway::load
