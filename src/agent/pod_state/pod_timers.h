// The timers of pods in kSyncing: the next sync, because a back-off ends or something is tried again, and the end of
// activeDeadlineSeconds. Thread: loop. Bounds: two timers for each pod.
#pragma once

#include "agent/pod_state/pod_table.h"
#include "client/api_client.h"

#include <functional>

namespace spillway::agent {

class PodTimers {
 public:
  using Due = std::function<void(PodWorker& worker, Now now)>;

  /// Both functions are called for pods in kSyncing only.
  PodTimers(client::ApiClient& api, PodTable& pods, Due on_retry, Due on_deadline);

  /// The pod is synced at that time, or earlier.
  void arm_retry(PodWorker& worker, Instant due);
  /// The deadline of the pod may have changed.
  void arm_deadline(PodWorker& worker);
  void cancel(PodWorker& worker);

 private:
  client::ApiClient& api_;
  PodTable& pods_;
  Due on_retry_;
  Due on_deadline_;
};

}  // namespace spillway::agent
