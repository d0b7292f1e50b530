// One client's connection to an HttpServer, whatever protocol it speaks, and the services of the server that it uses.
// Thread: the connection's loop, always.
#pragma once

#include "base/time.h"
#include "runtime/loop.h"
#include "wire/net/byte_stream.h"
#include "wire/server/http_exchange.h"
#include "wire/server/http_server.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace spillway::wire {

/// Reads of one connection before the thread serves the others.
inline constexpr int kReadsPerTurn = 8;
/// Bounds of a connection that has sent its last answer: many clients read no answer before all of their body has left.
inline constexpr std::size_t kLingerMax = std::size_t{32} * 1024 * 1024;
inline constexpr Duration kLingerTime = seconds(2);

class ClientConnection {
 public:
  virtual ~ClientConnection() = default;
  virtual void start() = 0;
  /// The name by which the client authenticated last, or its address.
  virtual const std::string& client() const = 0;
  /// Answers the requests under way, then closes; ends streams at once.
  virtual void wind_down() = 0;
  /// Closes now.
  virtual void close() = 0;
};

/// Port: the functions of the server that a connection uses. Thread: the connection's, unless stated otherwise.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  virtual const std::shared_ptr<runtime::Loop>& loop() const = 0;
  virtual const HttpServer::Options& options() const = 0;
  /// Memory to read into, shared by the connections of the thread.
  virtual std::span<char> scratch() = 0;
  /// The connection's client has authenticated with this rank. False: there is no place for it.
  virtual bool prove(std::uint64_t connection, ClientRank rank) = 0;
  /// `idle`: no request or answer is under way on the connection.
  virtual void set_idle(std::uint64_t connection, bool idle) = 0;
  virtual const std::shared_ptr<const AnswerContext>& answer_context() const = 0;
  /// Passes a request to the handler; its answer arrives by the AnswerTaker calls. Else the refusal.
  virtual std::optional<Refusal> deliver(std::shared_ptr<HttpExchange> exchange, Incoming incoming,
                                         std::weak_ptr<AnswerTaker> taker) = 0;
  /// Counts streams that were opened (or, negative, closed).
  virtual void count_streams(int change) = 0;
  /// The server stops: no long-running answer may begin.
  virtual bool stopping() const = 0;
  /// Draws if the client of a request is to open a new connection once it is answered.
  virtual bool draw_goaway() = 0;
  /// Passes bytes from an upgraded connection on.
  virtual void pass_input(std::shared_ptr<HttpExchange> exchange, std::string bytes) = 0;
  /// Notifies the handler that a stream has the room for which it waits.
  virtual void report_room(std::shared_ptr<HttpExchange> exchange) = 0;
  /// Notifies the handler that the client does not read the answer any more.
  virtual void report_gone(std::shared_ptr<HttpExchange> exchange) = 0;
  /// `change` more (or fewer) bytes of requests are in memory. False: there are too many for a client of this rank.
  virtual bool account(std::ptrdiff_t change, ClientRank rank) = 0;
  virtual void count_slow_stream() = 0;
  /// A new Audit-Id.
  virtual std::string make_audit_id() = 0;
  /// Hands shaken: another connection, of the protocol that was chosen, takes over.
  virtual void on_established(std::uint64_t connection, std::unique_ptr<ByteStream> stream, std::string address) = 0;
  /// The last call of a connection; it is destroyed soon after.
  virtual void on_closed(std::uint64_t connection) = 0;
};

}  // namespace spillway::wire
