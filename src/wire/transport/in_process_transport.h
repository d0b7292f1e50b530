// Carries an engine's calls straight to the API server of the same process, on the same loop, without HTTP. Results
// are posted, never delivered from inside execute(). Thread: loop. Bounds: bytes of one watch that wait for delivery.
#pragma once

#include "api/exchange/exchange.h"
#include "client/engine.h"
#include "runtime/loop.h"
#include "wire/server/http_server.h"
#include "wire/transport/open_calls.h"

#include <cstddef>
#include <memory>
#include <set>

namespace spillway::wire {

class InProcessTransport final : public client::Transport {
 public:
  /// Sends all requests to `server` (an ApiEndpoint) as `user`. `loop` and `server` must outlive the transport.
  InProcessTransport(runtime::Loop& loop, RequestHandler& server, api::UserInfo user);
  ~InProcessTransport() override;
  InProcessTransport(const InProcessTransport&) = delete;
  InProcessTransport& operator=(const InProcessTransport&) = delete;

  void execute(client::ApiCommand command, Receiver& receiver) override;
  void disconnect(Receiver& receiver) override;

  static constexpr std::size_t kWatchBytesMax = std::size_t{64} * 1024 * 1024;

 private:
  class Sink;
  class CallSink;
  class WatchSink;

  void ask(const OpenCalls::EntryPtr& entry, api::Request request, std::shared_ptr<Sink> sink);
  void abandon(const OpenCalls::EntryPtr& entry);

  RequestHandler& server_;
  std::shared_ptr<const api::UserInfo> user_;
  std::shared_ptr<OpenCalls> calls_;  // sinks hold it weakly: what is written after the transport has gone is lost
  std::shared_ptr<std::set<OpenCalls::Entry*>> unanswered_;
};

}  // namespace spillway::wire
