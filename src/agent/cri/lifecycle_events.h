// Compares two container lists of the runtime, reports events for the differences, and checks that lists arrive in time
// (upstream's PLEG). A pod whose status could not be read keeps its record, so that its events are reported again.
// Thread: loop (plain values). Source: spec "Pod lifecycle", 2.1-2.5; vectors pod-lifecycle/pleg_traces.
#pragma once

#include "base/time.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::agent {

/// kUnknown: also a container that was created and has not run.
enum class ListedState { kRunning, kExited, kUnknown };

/// One pod of a list. Sandboxes count as containers: ready is running.
struct ListedPod {
  struct Item {
    std::string id;
    ListedState state = ListedState::kUnknown;
  };

  std::vector<Item> containers;
  std::vector<Item> sandboxes;
};

struct LifecycleEvent {
  enum class Kind { kStarted, kDied, kRemoved, kChanged };

  Kind kind = Kind::kChanged;
  std::string id;

  friend bool operator==(const LifecycleEvent&, const LifecycleEvent&) = default;
};

class LifecycleRecords {
 public:
  static constexpr Duration kListedWithin = minutes(3);

  /// Events by uid, in order. An empty list: the pod only has to be inspected again. Each pod is to be answered by
  /// on_inspected().
  std::map<std::string, std::vector<LifecycleEvent>> on_list(std::map<std::string, ListedPod> pods, Instant now);
  /// Takes the answer about a pod. True: its status was read, or the pod is gone.
  void on_inspected(const std::string& uid, bool successful);
  bool is_gone(const std::string& uid) const;

  /// Pods whose status could not be had.
  const std::set<std::string>& to_inspect() const { return to_inspect_; }

  /// The error of lists that are late, in upstream's words; nullopt: they arrive in time.
  std::optional<std::string> problem(Instant now) const;

 private:
  std::map<std::string, ListedPod> current_;
  std::map<std::string, ListedPod> reported_;  // pods as of the last reported events
  std::set<std::string> to_inspect_;
  std::optional<Instant> listed_;
};

}  // namespace spillway::agent
