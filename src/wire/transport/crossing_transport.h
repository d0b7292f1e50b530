// Carries an engine's calls to a transport of another loop of this process, and the events back: the engine of a node
// reaches the API server beside it, though each has a loop and thread of its own. Documents are shared, not copied;
// they never change. Only the cache of a watch event for its decoded object belongs to one loop, so each event gets
// another one here.
// Thread: the engine's loop. Bounds: kWatchBytesMax of one watch that wait for the engine; beyond, the watch ends with
// an error, as if its connection had broken.
#pragma once

#include "client/engine.h"
#include "runtime/loop.h"
#include "wire/transport/open_calls.h"

#include <cstddef>
#include <memory>

namespace spillway::wire {

class CrossingTransport final : public client::Transport {
 public:
  static constexpr std::size_t kWatchBytesMax = std::size_t{64} * 1024 * 1024;

  /// `inner` is used and destroyed on `other` only. Both loops must outlive the transport, and `other` must run on
  /// until it has done what the destructor posts.
  CrossingTransport(runtime::Loop& own, runtime::Loop& other, std::unique_ptr<client::Transport> inner);
  ~CrossingTransport() override;
  CrossingTransport(const CrossingTransport&) = delete;
  CrossingTransport& operator=(const CrossingTransport&) = delete;

  void execute(client::ApiCommand command, Receiver& receiver) override;
  void disconnect(Receiver& receiver) override;

 private:
  class FarSide;

  runtime::Loop& other_;
  std::shared_ptr<OpenCalls> calls_;
  std::shared_ptr<FarSide> far_;  // owned by the loop other_
};

}  // namespace spillway::wire
