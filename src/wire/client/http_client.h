// An HTTP/1.1 client for one server: calls share a few kept connections, every stream has its own.
// Thread: the loop it is given, which should be one that may be slow (a LoopThread). Bounds: connections, calls that
// wait, time to connect and to answer.
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"
#include "base/time.h"
#include "runtime/loop.h"
#include "wire/client/client_credentials.h"
#include "wire/client/kubeconfig.h"
#include "wire/tls/tls.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::wire {

/// Where a server is and what is said to it.
struct HttpEndpoint {
  std::string host;  // a name or an address, without brackets
  std::uint16_t port = 0;
  std::string path_prefix;                // before every target; empty or "/prefix"
  std::shared_ptr<const TlsContext> tls;  // null: plain HTTP
  std::string tls_name;                   // expected on the certificate; empty: host
  /// Expected as the subject of the certificate, in place of a name or address; needs a context that verifies.
  std::optional<TlsSubject> tls_subject;
  /// A server of this process listens on this port: an address of this machine with it is refused. 0: none does.
  std::uint16_t own_port = 0;
  CredentialSource credentials;
};

/// The server of a kubeconfig. kInvalid: which field is wrong and why; `path` is the file's name for messages.
Result<HttpEndpoint> make_endpoint(const Kubeconfig& config, const std::string& path);

class HttpClient {
 public:
  struct Limits {
    std::size_t connections_max = 8;                             // for calls
    std::size_t waiting_max = 4096;                              // calls that wait for a connection
    std::size_t body_bytes_max = std::size_t{64} * 1024 * 1024;  // of the answer to a call
    Duration connect_max = seconds(10);                          // name, TCP and TLS
    Duration idle_max = seconds(90);
  };

  enum class Kind {
    kCall,     // `answer_max` bounds the whole answer
    kStream,   // `answer_max` bounds the time to its header
    kUpgrade,  // the same; after an answer 101 the connection is not HTTP any more, see write()
  };

  /// Hears of one exchange: on_head, on_data, then on_done, which is the last. Not called from inside start().
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_head(const api::Response& head) = 0;
    virtual void on_data(std::string data) = 0;

    /// So many bytes of write() have left.
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
  /// Nothing more is heard of it.
  void cancel(std::uint64_t id);
  /// From now on new connections show this one's certificate; connections that show another end after their exchange.
  void use_certificate(std::shared_ptr<const TlsContext> tls);
  /// Sends bytes on an upgraded connection. The caller bounds them by on_written().
  void write(std::uint64_t id, std::string_view bytes);
  /// Stops and resumes reading the answer.
  void pause(std::uint64_t id);
  void resume(std::uint64_t id);

 private:
  class Pool;
  std::shared_ptr<Pool> pool_;
};

}  // namespace spillway::wire
