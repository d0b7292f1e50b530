// Takes waiting nodes out of the queues of their zones: at the ticks of a fixed beat while a zone lets any through, and
// after a failure as soon as the rate of the zone allows another node.
// Thread: loop. Bound: one timer of the beat, and one for each failure.
#pragma once

#include "base/time.h"
#include "client/api_client.h"
#include "policy/lifecycle/node_monitor.h"
#include "policy/lifecycle/profile.h"

#include <functional>
#include <optional>
#include <string>

namespace spillway::controllers {

class QueueBeat {
 public:
  using Entry = lifecycle::RateLimitedQueue::Entry;
  /// The turn of a node has come.
  using Handle = std::function<lifecycle::NodeMonitor::Answer(const std::string& zone, const Entry& entry, Now now)>;

  /// `period`: between two ticks. `client` and `monitor` must outlive this.
  QueueBeat(client::ApiClient& client, lifecycle::NodeMonitor& monitor, const lifecycle::Remedies& remedies,
            Duration period, Handle handle);
  QueueBeat(const QueueBeat&) = delete;
  QueueBeat& operator=(const QueueBeat&) = delete;

  /// The beat starts just behind a pass that is due at the same instant.
  void start(Now now) { ticks_from_ = now.mono + nanoseconds(1); }

  /// Sets the timer of the next tick, if any node waits for it.
  void arm(Now now);
  /// A node that was taken out could not be handled: it is the next one of its zone, which may be at once.
  void retry(const std::string& zone, const Entry& entry, Now now);

 private:
  void tick(Now now);

  client::ApiClient& client_;
  lifecycle::NodeMonitor& monitor_;
  bool stopped_lets_through_;  // upstream: the limiter of a stopped zone may let its burst through
  Duration period_;
  Handle handle_;
  Instant ticks_from_{};
  std::optional<client::ApiClient::TimerId> timer_;
};

}  // namespace spillway::controllers
