// Reports why a pod waits for a node: one event and one write of its condition PodScheduled per message. A failed write
// is repeated while the pod waits for the same reason; after the last attempt the next refusal writes it.
// Thread: loop. Bounds: kWritesMax writes per message. Source: Kubernetes docs, "Pod Lifecycle", PodScheduled; spec
// "Scheduler and workloads", 7.
#pragma once

#include "api/json/json.h"
#include "client/api_client.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "controllers/scheduling/unschedulable_pods.h"
#include "telemetry/log.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::controllers {

/// The condition PodScheduled=False of a pod.
api::Json unscheduled_condition(const api::Pod& pod, const std::string& message, std::string_view reason, Now now);

class PodConditions {
 public:
  using PodPtr = scheduling::PodPtr;

  /// The parts of the scheduler that reports use; they must outlive this.
  struct Parts {
    client::ApiClient& client;
    const client::Informer<api::Pod>& pods;
    UnschedulablePods& refused;
    const telemetry::Log& log;
  };

  struct Hooks {
    std::function<client::EventRecorder&(const api::Pod& pod)> events_of;
    /// True while a preemption is under way for the pod.
    std::function<bool(const std::string& pod_uid)> is_preempting;
    /// The pod loses the node that it was promised.
    std::function<void(const PodPtr& pod)> on_promise_lost;
  };

  PodConditions(Parts parts, Hooks hooks) : parts_(parts), hooks_(std::move(hooks)) {}

  PodConditions(const PodConditions&) = delete;
  PodConditions& operator=(const PodConditions&) = delete;

  /// Reports why the pod waits, once. `promise`: the node that it is promised from now on, empty if it loses the
  /// promise; nullopt: nothing changes.
  void report(const PodPtr& pod, const std::string& message, std::optional<std::string> promise, Now now,
              std::string_view reason = "Unschedulable");

 private:
  /// `tries`: attempts that are left, with this one.
  void write(const PodPtr& pod, const std::string& message, const api::Json& patch, int tries);
  void on_written(const PodPtr& pod, const std::string& message, const api::Json& patch, int tries,
                  const Result<api::Json>& outcome, Now now);
  /// True if the last refusal of this very pod had that message, and no preemption is under way for it.
  bool still_waits(const api::Pod& pod, const std::string& message) const;

  Parts parts_;
  Hooks hooks_;
};

}  // namespace spillway::controllers
