// Holds back replacements of evicted pods, by owner, by the rules of policy/workloads/eviction_backoff.h, which gets
// the changes of pods; reported in an event about the owner and to users who ask. Switched off, nothing is ever held.
// The state is the process's own: after a restart, or in another process, it begins anew, and evicted pods in a cache's
// first list do not count. Thread: loop. Bounds: one back-off per owner that has had evictions, dropped with the owner
// or once all of its nodes are forgotten.
#pragma once

#include "base/time.h"
#include "client/event_recorder.h"
#include "policy/reason.h"
#include "policy/workloads/eviction_backoff.h"
#include "policy/workloads/pod_state.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace spillway::controllers {

class EvictionHolds {
 public:
  enum class Mode { kOff, kOn };

  explicit EvictionHolds(Mode mode) : mode_(mode) {}

  /// A pod of an owner that exists has changed, after the caches were filled.
  void on_pod(const workloads::PodPtr& before, const workloads::PodPtr& after, client::EventRecorder& events, Now now);

  /// nullptr: none of its replacements has ever to wait. Valid until the next call that changes anything.
  const workloads::EvictionBackoff* of(const std::string& owner_uid, Now now);

  void forget(const std::string& owner_uid) { by_owner_.erase(owner_uid); }

  /// The waits of an owner, for users: one reason per node, the earliest end first.
  policy::Decision explain(policy::Subject owner, std::string_view by, Now now) const;

 private:
  Mode mode_;
  std::map<std::string, workloads::EvictionBackoff> by_owner_;  // by uid
};

}  // namespace spillway::controllers
