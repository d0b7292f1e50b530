// An HTTP client for one server, over HTTP/2 if both offer it, else over HTTP/1.1; connection_plan.h chooses the
// connection of each exchange. A request that the server has not processed is sent again, a few times.
// Thread: the loop it is given, which should be one that may be slow (a LoopThread). Bounds: connections, exchanges
// that wait, time to connect and to answer.
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"
#include "base/time.h"
#include "runtime/loop.h"
#include "wire/client/connection_plan.h"
#include "wire/client/http2_client_connection.h"
#include "wire/client/http_endpoint.h"
#include "wire/tls/tls.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::wire {

class HttpClient {
 public:
  struct Limits {
    std::size_t connections_max = 8;                             // for calls; over HTTP/2 for all, in each lane
    std::size_t waiting_max = 4096;                              // exchanges of a kind that wait for a connection
    std::size_t body_bytes_max = std::size_t{64} * 1024 * 1024;  // for the answer to a call
    Duration connect_max = seconds(10);                          // name, TCP and TLS
    Duration idle_max = seconds(90);
    Http2Patience http2_patience = {};
  };

  /// kCall: `answer_max` bounds the whole answer. kStream: the time to its header. kUpgrade: the same; after an answer
  /// 101 the connection is not HTTP any more, see write().
  using Kind = ExchangeKind;

  /// Hears of one exchange: on_head, on_data, then on_done, which is the last. Not called from inside start().
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_head(const api::Response& head) = 0;
    virtual void on_data(std::string data) = 0;

    /// This number of bytes given to write() was sent.
    virtual void on_written(std::size_t bytes) { static_cast<void>(bytes); }

    /// An error means that the answer is missing or cut off: kServiceUnavailable, naming the server.
    virtual void on_done(std::optional<Error> error) = 0;
  };

  HttpClient(runtime::Loop& loop, HttpEndpoint endpoint, Limits limits);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// `id` is the caller's and names the exchange until on_done. The target is relative to the endpoint.
  void start(std::uint64_t id, api::Request request, Kind kind, Duration answer_max,
             std::shared_ptr<Listener> listener);
  /// Cancels the exchange: its listener is not called any more.
  void cancel(std::uint64_t id);
  /// Makes new connections show this certificate; connections that show another one end after their exchange.
  void use_certificate(std::shared_ptr<const TlsContext> tls);
  /// Sends bytes on an upgraded connection. The caller bounds them by on_written().
  void write(std::uint64_t id, std::string_view bytes);
  /// Stops and resumes reading the answer, and with that the server.
  void pause(std::uint64_t id);
  void resume(std::uint64_t id);

 private:
  class Pool;
  std::shared_ptr<Pool> pool_;
};

}  // namespace spillway::wire
