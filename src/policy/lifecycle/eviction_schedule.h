// Pods that are evicted at a known instant unless cancelled (NoExecute taint with tolerationSeconds).
// Thread: loop. The driver arms a single timer for next_due(). Bound: one entry per pod.
#pragma once

#include "api/object/meta.h"
#include "base/time.h"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace spillway::lifecycle {

class EvictionSchedule {
 public:
  struct Timer {
    Instant created;  // when the wait began
    Instant due;
  };

  struct Due {
    api::PodKey pod;
    Instant created;
  };

  void schedule(const api::PodKey& pod, Timer timer);  // replaces an earlier timer of the same pod
  bool cancel(const api::PodKey& pod);                 // false: the pod had no timer
  const Timer* find(const api::PodKey& pod) const;
  std::optional<Instant> next_due() const;
  std::vector<Due> take_due(Instant now);  // in (due, pod) order

  const std::map<api::PodKey, Timer>& all() const { return timer_by_pod_; }

 private:
  std::map<api::PodKey, Timer> timer_by_pod_;
  std::set<std::pair<Instant, api::PodKey>> order_;  // the same entries, ordered by time
};

}  // namespace spillway::lifecycle
