// Binding cycles: a pod that has a node is bound to it, once its claims are bound, by the API server or by an extender.
// Others are scheduled meanwhile.
// Thread: loop. Bounds: one cycle per pod; the scheduler begins none while `under_way()` is at its maximum. Source:
// Kubernetes docs, "Scheduling Framework", binding cycle.
#pragma once

#include "client/api_client.h"
#include "client/event_recorder.h"
#include "controllers/scheduling/extender_calls.h"
#include "controllers/scheduling/pod_conditions.h"
#include "controllers/scheduling/scheduler_metrics.h"
#include "controllers/scheduling/scheduler_timings.h"
#include "controllers/scheduling/unschedulable_pods.h"
#include "policy/scheduling/pod_queue.h"
#include "telemetry/log.h"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace spillway::controllers {

class BindingCycles {
 public:
  using PodPtr = scheduling::PodPtr;

  /// The parts of the scheduler that a binding uses; they must outlive it.
  struct Parts {
    client::ApiClient& client;
    UnschedulablePods& refused;
    ExtenderCalls& extender_calls;
    PodConditions& conditions;
    SchedulerMetrics& metrics;
    SchedulerTimings& timings;
    const telemetry::Log& log;
  };

  struct Hooks {
    std::function<client::EventRecorder&(const api::Pod& pod)> events_of;
    /// True while the pod counts on a node without being seen bound.
    std::function<bool(const std::string& pod_uid)> is_assumed;
    /// Removes the pod from its node; it is tried again after its back-off.
    std::function<void(const PodPtr& pod, const std::string& node, Now now)> give_up;
    /// The present pod; nullptr: it no longer waits for a node.
    std::function<PodPtr(const PodPtr& pod)> still_waiting;
  };

  BindingCycles(Parts parts, Hooks hooks) : parts_(parts), hooks_(std::move(hooks)) {}

  BindingCycles(const BindingCycles&) = delete;
  BindingCycles& operator=(const BindingCycles&) = delete;

  /// A node was found for the pod. bind() follows, or pause().
  void begin(const api::Pod& pod, const std::optional<scheduling::PodQueue::Course>& course, Now now);
  void bind(const PodPtr& pod, const std::string& node, Now now);

  /// The pod waits for its claims; its cycle does not count until they are bound.
  void pause() { --under_way_; }

  void on_claims_bound(const PodPtr& pod, const std::string& node, Now now) {
    ++under_way_;
    bind(pod, node, now);
  }

  /// Requeues the pod, with the reason in its status.
  void on_claims_failed(const PodPtr& pod, const std::string& node, const std::string& why, Now now);

  /// Forgets the attempt of a pod that was deleted or has lost its node.
  void erase(const std::string& pod_uid) { attempts_.erase(pod_uid); }

  std::size_t under_way() const { return under_way_; }

  /// Cycles that wait for an extender; they are not under way.
  std::size_t at_extenders() const { return at_extenders_; }

 private:
  /// The attempt in which a node was found.
  struct Attempt {
    std::optional<scheduling::PodQueue::Course> course;
    Instant found{};
    bool sampled = false;  // plug-ins of this cycle are measured
  };

  void bind_by_api(const PodPtr& pod, const std::string& node, Now now);
  void on_api_bound(const PodPtr& pod, const std::string& node, bool sampled, Instant begin,
                    const Result<api::Json>& outcome, Now now);
  void bind_by_extender(std::size_t extender, const PodPtr& pod, const std::string& node, Now now);
  void on_extender_bound(std::size_t extender, const PodPtr& pod, const std::string& node,
                         const Result<std::string>& body, Now now);
  void on_bound(const PodPtr& pod, const std::string& node, const Outcome& outcome, Now now);

  Parts parts_;
  Hooks hooks_;
  std::map<std::string, Attempt> attempts_;  // by uid of the pod
  std::size_t under_way_ = 0;
  std::size_t at_extenders_ = 0;
};

}  // namespace spillway::controllers
