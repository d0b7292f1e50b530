// Pods that wait for a node, in the order of their turns: higher priority first, then the earlier entry, then the older
// pod, then the name. A refused pod waits for a change that may help it, and then for the rest of its back-off, which
// doubles with every attempt; changes during the attempt count, too. Thread: one. Bounds: the pods that were entered.
// Source: Kubernetes docs, "Scheduling Framework", QueueSort; spec "Scheduler and workloads", 1; vectors
// scheduling/queue_sort.
#pragma once

#include "api/object/pod.h"
#include "base/time.h"
#include "policy/scheduling/plugins.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace spillway::scheduling {

/// The shortest wait of a refused pod.
struct Backoff {
  Duration initial = seconds(1);
  Duration max = seconds(10);
};

/// Doubled with every attempt after the first; zero before any.
Duration backoff_after(std::int64_t attempts, const Backoff& backoff);

class PodQueue {
 public:
  static constexpr std::string_view kSomeChange = "ForceActivate";

  explicit PodQueue(Backoff backoff = {}) : backoff_(backoff) {}

  /// The pod waits for its turn from now on; one that waits already keeps its place. Another pod of its name is
  /// forgotten.
  void enter(const api::Pod& pod, Instant now);
  /// The next pod; it is being tried until refuse(), fail() or the like. nullopt: no pod is ready.
  std::optional<std::string> pop(Instant now);
  /// The attempt refused the pod: a change must happen first, unless one has happened since its turn began. `by`: the
  /// plug-ins that refused it.
  void refuse(const std::string& key, Instant now, FilterSet by = {});
  /// The attempt failed for a cause outside of the pod: only its back-off has to pass.
  void fail(const std::string& key, Instant now);
  /// A change happened after which a refused pod, or one that is being tried, may fit. Others are not affected. True:
  /// it waits for the end of its back-off from now on.
  /// `event`: the change, a constant, for incoming().
  bool wake(const std::string& key, std::string_view event = kSomeChange);
  /// Requeues the pods that were refused at this time or before.
  std::vector<std::string> wake_refused_until(Instant then);
  /// The pod has a node, is deleted, or belongs to another scheduler now.
  void erase(const std::string& key);

  bool contains(const std::string& key) const { return pods_.contains(key); }

  /// A pod's way through the queue.
  struct Course {
    std::int64_t attempts = 0;
    Instant waits_since;  // time when the pod was first added
    Instant tried_since;  // start of the last attempt

    friend bool operator==(const Course&, const Course&) = default;
  };

  enum class State { kActive, kTried, kBackingOff, kRefused };

  /// State of a waiting pod, for reports.
  struct Sight {
    State state = State::kActive;
    Course course;
    Instant until;  // end of the back-off
    FilterSet refused_by;
  };

  /// nullopt: the pod is not in the queue.
  std::optional<Sight> find(const std::string& key) const;

  /// The keys ordered by name.
  std::vector<std::string> keys() const;

  /// Pods that were refused and not tried since, by the scheduler they name and the plug-in that refused them. Of pods
  /// that several plug-ins refused, each counts one.
  const std::map<std::pair<std::string, Filter>, std::size_t>& refusals() const { return refusals_; }

  /// The number of pods that entered a list ("active", "backoff", "unschedulable"), by list and event; pods whose
  /// back-off is over when they are requeued count in both lists.
  const std::map<std::pair<std::string_view, std::string_view>, std::uint64_t>& incoming() const { return incoming_; }

  /// The time at which the longest refused pod was refused; nullopt: none waits refused.
  std::optional<Instant> refused_since() const {
    return refused_.empty() ? std::nullopt : std::optional(refused_.begin()->first);
  }

  /// nullopt: the pod is not in the queue, or was never tried.
  std::optional<Course> course_of(const std::string& key) const;

  /// The time at which the next back-off ends; nullopt: no pod is in back-off.
  std::optional<Instant> next_due() const;

  std::size_t active() const { return active_.size(); }

  std::size_t backing_off() const { return backing_off_.size(); }

  std::size_t refused() const { return refused_.size(); }

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

  struct Waiting {
    Turn turn;
    std::string uid;
    std::string scheduler;
    State state = State::kActive;
    Course course;
    Instant until;         // end of the back-off
    FilterSet refused_by;  // as counted in refusals_
    bool woken = false;    // a change requeued the pod during its attempt
  };

  void count_refusals(Waiting& pod, FilterSet by);
  void exit_state(const Waiting& pod);
  void set_state(Waiting& pod, State state, std::string_view event);
  void release(Instant now);

  Backoff backoff_;
  std::map<std::string, Waiting> pods_;
  std::set<Turn> active_;
  std::set<std::pair<Instant, std::string>> backing_off_;
  std::set<std::pair<Instant, std::string>> refused_;  // by time of the refusal
  std::map<std::pair<std::string, Filter>, std::size_t> refusals_;
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> incoming_;
};

}  // namespace spillway::scheduling
