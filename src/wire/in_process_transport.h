// Carries an engine's calls straight to the API server of the same process, on the same loop, without HTTP. Results
// are posted, never delivered from inside execute(). Thread: loop. Bounds: bytes of one watch that wait for delivery.
#pragma once

#include "api/exchange.h"
#include "client/engine.h"
#include "runtime/loop.h"
#include "wire/http_server.h"

#include <cstddef>
#include <memory>

namespace spillway::wire {

class InProcessTransport final : public client::Transport {
 public:
  /// Everything is asked of `server` (an ApiEndpoint) as `user`. `loop` and `server` must outlive the transport.
  InProcessTransport(runtime::Loop& loop, RequestHandler& server, api::UserInfo user);
  ~InProcessTransport() override;
  InProcessTransport(const InProcessTransport&) = delete;
  InProcessTransport& operator=(const InProcessTransport&) = delete;

  void execute(client::ApiCommand command, Receiver& receiver) override;
  void disconnect(Receiver& receiver) override;

  static constexpr std::size_t kWatchBytesMax = 64 * 1024 * 1024;

 private:
  class CallSink;
  class WatchSink;
  class Desk;
  struct Open;

  void abandon(const std::shared_ptr<Open>& open);

  RequestHandler& server_;
  api::UserInfo user_;
  std::shared_ptr<Desk>
      desk_;  // sinks hold it weakly: what the server still writes after the transport is gone is lost
};

}  // namespace spillway::wire
