// One attempt to reach a server: its addresses in order, the handshake of TLS, and the check of the peer's identity.
// Thread: the client's loop. The caller bounds the time.
#pragma once

#include "base/error.h"
#include "runtime/loop.h"
#include "wire/client/http_endpoint.h"
#include "wire/net/byte_stream.h"
#include "wire/tls/tls.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::wire {

class ServerDial final : public std::enable_shared_from_this<ServerDial> {
 public:
  /// A stream that is ready for data, or the error.
  using Done = std::move_only_function<void(Result<std::unique_ptr<ByteStream>>)>;

  /// `endpoint` must outlive the attempt. `offered`: at most.
  ServerDial(runtime::Loop& loop, const HttpEndpoint& endpoint, Protocols offered)
      : loop_(loop), endpoint_(endpoint), offered_(offered) {}

  ~ServerDial() { stop(); }

  ServerDial(const ServerDial&) = delete;
  ServerDial& operator=(const ServerDial&) = delete;

  /// May report at once. `done` is called once, unless stop() is called before.
  void start(std::vector<std::string> addresses, Done done);
  /// Stops the attempt; no outcome is reported afterwards.
  void stop();

 private:
  void connect_next();
  void on_ready();
  bool on_connected();
  void shake_hands();
  /// The reason why the other end is not the wanted server; nullopt: it is the right one.
  std::optional<std::string> peer_problem() const;
  void finish(Result<std::unique_ptr<ByteStream>> outcome);
  void watch(int fd, short interest);

  runtime::Loop& loop_;
  const HttpEndpoint& endpoint_;
  const Protocols offered_;
  Done done_;
  std::vector<std::string> addresses_;
  std::size_t next_address_ = 0;
  Socket connecting_;
  std::unique_ptr<ByteStream> stream_;
  int watched_fd_ = -1;
  short interest_ = 0;
};

}  // namespace spillway::wire
