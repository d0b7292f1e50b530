// The stop of a pod whose containers have preStop hooks, or are stopped one after the other: the next actions, and the
// end of the grace.
// Thread: any (a plain value). Source: Kubernetes docs, "Pod Lifecycle", termination of Pods, "Sidecar Containers";
// spec "Pod lifecycle", 9.8, 9.9; spec "Node agent", 14.6.
#pragma once

#include "api/object/pod.h"
#include "base/time.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::containers {

using ContainerNames = std::set<std::string, std::less<>>;

/// One step of an ordered stop: a hook or a signal for one container.
struct StopStep {
  enum class What { kHook, kStop };

  What what = What::kStop;
  std::string container;
  Duration grace{};  // longest run of a hook, or the time from SIGTERM to SIGKILL

  friend bool operator==(const StopStep&, const StopStep&) = default;
};

class OrderlyStop {
 public:
  /// True if stopping all containers at once would not be enough.
  static bool is_needed(const api::PodSpec& spec, const ContainerNames& running);

  OrderlyStop(const api::PodSpec& spec, const ContainerNames& running, std::int64_t grace_seconds, Instant now);

  /// The steps to carry out now; each step is returned once.
  std::vector<StopStep> advance(Instant now);
  void on_hook_done(const std::string& container);
  void on_gone(const std::string& container);

  /// No container is left.
  bool is_over() const { return left_.empty(); }

  /// Time at which the containers that still wait for others get their signal all the same.
  Instant due() const { return since_ + seconds(grace_seconds_); }

 private:
  enum class State { kNew, kHook, kWaits, kStopping };

  struct Left {
    State state = State::kNew;
    bool has_hook = false;
    std::vector<std::string> waits_for;
  };

  std::int64_t seconds_left(Instant now) const;

  Instant since_;
  std::int64_t grace_seconds_;
  std::map<std::string, Left> left_;
};

}  // namespace spillway::containers
