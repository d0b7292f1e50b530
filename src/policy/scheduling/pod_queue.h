// Pods that wait for a node, and whose turn it is: higher priority first, then who entered earlier, then the older,
// then the name. A pod that was refused waits for something to change, and then for the rest of its back-off, which
// doubles with every attempt. Thread: one. Bounds: the pods it is told of. Source: Kubernetes docs, "Scheduling
// Framework", QueueSort; spec "Scheduler and workloads", 1; vectors scheduling/queue_sort.
#pragma once

#include "api/object/pod.h"
#include "base/time.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace spillway::scheduling {

/// How long a pod that was refused is left alone at least.
struct Backoff {
  Duration initial = seconds(1);
  Duration max = seconds(10);
};

/// Doubled with every attempt after the first; zero before any.
Duration backoff_after(std::int64_t attempts, const Backoff& backoff);

class PodQueue {
 public:
  explicit PodQueue(Backoff backoff = {}) : backoff_(backoff) {}

  /// The pod waits for its turn from now on; one that waits already keeps its place. Another pod of its name is
  /// forgotten.
  void enter(const api::Pod& pod, Instant now);
  /// The one whose turn it is; it is being tried until told otherwise. nullopt: nobody's.
  std::optional<std::string> pop(Instant now);
  /// It was tried in vain: something has to change first.
  void refuse(const std::string& key, Instant now);
  /// It was tried, and what went wrong had nothing to do with it: only its back-off has to pass.
  void fail(const std::string& key, Instant now);
  /// Something changed that may let in a pod that was refused. Others are not affected.
  void wake(const std::string& key);
  /// It has a node, is gone, or is not ours any more.
  void erase(const std::string& key);

  bool contains(const std::string& key) const { return pods_.contains(key); }

  /// What a pod has been through.
  struct Course {
    std::int64_t attempts = 0;
    Instant waits_since;  // it entered first
    Instant tried_since;  // of the last attempt

    friend bool operator==(const Course&, const Course&) = default;
  };

  /// nullopt: it does not wait here, or was never tried.
  std::optional<Course> course_of(const std::string& key) const;

  /// When the next back-off ends; nullopt: nobody waits for one.
  std::optional<Instant> next_due() const;

  std::size_t active() const { return active_.size(); }

  std::size_t backing_off() const { return backing_off_.size(); }

  std::size_t refused() const { return refused_; }

 private:
  struct Turn {
    std::int32_t priority = 0;
    Instant entered;
    WallTime created;
    std::string key;

    friend bool operator<(const Turn& a, const Turn& b) {
      return std::tie(b.priority, a.entered, a.created, a.key) < std::tie(a.priority, b.entered, b.created, b.key);
    }
  };

  enum class State { kActive, kTried, kBackingOff, kRefused };

  struct Waiting {
    Turn turn;
    std::string uid;
    State state = State::kActive;
    Course course;
    Instant until;  // of the back-off
  };

  void leave_state(const Waiting& pod);
  void set_state(Waiting& pod, State state);
  void release(Instant now);

  Backoff backoff_;
  std::map<std::string, Waiting> pods_;
  std::set<Turn> active_;
  std::set<std::pair<Instant, std::string>> backing_off_;
  std::size_t refused_ = 0;
};

}  // namespace spillway::scheduling
