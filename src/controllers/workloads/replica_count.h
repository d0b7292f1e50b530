// The number of a ReplicaSet's pods in each state, counted once and then updated by the changes of the pods, so that
// the cost of a sync does not grow with their number. Thread: loop.
#pragma once

#include "api/object/pod.h"
#include "api/object/selector.h"
#include "api/object/workload.h"

#include <cstdint>

namespace spillway::controllers {

/// Pods that are replaced before they are deleted (policy/workloads/replacement_first.h).
enum class ReplacedPods {
  kCounted,
  kLeftOut,  // pods that are replaced by others
};

/// Counts the pods whose controller is the set.
class ReplicaCount {
 public:
  explicit ReplicaCount(const api::ReplicaSet& set, ReplacedPods replaced = ReplacedPods::kCounted)
      : selector_(set.selector), labels_(set.pod_template.labels), replaced_(replaced) {}

  /// False if the set's selector or labels have changed, so that the pods must be counted anew.
  bool fits(const api::ReplicaSet& set) const {
    return selector_ == set.selector && labels_ == set.pod_template.labels;
  }

  void add(const api::Pod& pod) { count(pod, 1); }

  /// Removes the pod in the state in which it was added.
  void remove(const api::Pod& pod) { count(pod, -1); }

  /// Owned pods that the selector matches, ended ones included.
  std::int64_t selected() const { return selected_; }

  /// Number of owned pods that the selector no longer matches; they are released.
  std::int64_t strangers() const { return strangers_; }

  /// The counts of the active, selected pods, as a status without an observed generation.
  const api::ReplicaSetStatus& active() const { return active_; }

 private:
  void count(const api::Pod& pod, std::int32_t by);

  api::LabelSelector selector_;
  api::StringMap labels_;
  ReplacedPods replaced_;
  std::int64_t selected_ = 0;
  std::int64_t strangers_ = 0;
  api::ReplicaSetStatus active_;
};

}  // namespace spillway::controllers
