// DNS clients over TCP: connections with time-outs. Thread: loop. Bounds: kConnectionsMax connections,
// kConnectionsPerClient of one address, kQueriesOfConnection queries of one wait at a time (the rest stays with the
// client), kUnsentMax bytes of answers that a client does not read, after which its connection is closed. A connection
// without a query for kIdle is closed, also in the middle of one. Source: RFC 7766.
#pragma once

#include "api/text/ip_address.h"
#include "base/alive.h"
#include "runtime/loop.h"
#include "wire/net/socket.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::wire {

class StreamClients {
 public:
  static constexpr std::size_t kConnectionsMax = 256;
  static constexpr std::size_t kConnectionsPerClient = 32;
  static constexpr std::size_t kQueriesOfConnection = 16;
  static constexpr std::size_t kUnsentMax = std::size_t{256} * 1024;
  static constexpr Duration kIdle = seconds(10);

  using ConnectionId = std::uint64_t;

  struct Callbacks {
    /// Asked for each new connection; others are closed at once.
    std::function<bool(const api::IpAddress& client)> may_ask;
    /// Called with each message. answer() or close() must follow.
    std::function<void(ConnectionId connection, const api::IpAddress& client, std::string_view message)> on_message;
  };

  StreamClients(runtime::Loop& loop, Callbacks callbacks) : loop_(loop), callbacks_(std::move(callbacks)) {}

  ~StreamClients();
  StreamClients(const StreamClients&) = delete;
  StreamClients& operator=(const StreamClients&) = delete;

  /// Accepts waiting connections.
  void accept(const Socket& listener);
  /// One answer, also an empty one, which is not sent. Harmless if the connection is gone.
  void answer(ConnectionId connection, std::string_view message);
  void close(ConnectionId connection);

  std::size_t size() const { return connections_.size(); }

 private:
  struct Connection {
    Socket socket;
    api::IpAddress client;
    std::string received;
    std::string unsent;
    std::size_t waiting = 0;  // queries without an answer yet
    bool ended = false;       // the client sends no more
    Instant idle_since;
    runtime::Loop::TimerId idle_timer = 0;
  };

  void on_ready(ConnectionId id);
  /// False: the connection has been closed.
  bool read(ConnectionId id, Connection& connection);
  bool send(ConnectionId id, Connection& connection);
  /// Passes on the messages that have arrived completely.
  void take_messages(ConnectionId id);
  void update_interest(ConnectionId id);
  void watch_idle(ConnectionId id, Instant due);

  runtime::Loop& loop_;
  Callbacks callbacks_;
  ConnectionId last_ = 0;
  std::map<ConnectionId, Connection> connections_;
  std::map<api::IpAddress, std::size_t> by_client_;
  Alive alive_;
};

}  // namespace spillway::wire
