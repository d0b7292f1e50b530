// Decides which pods of lower priority leave for a pod that no node takes: by the rules, by the extenders' say, and by
// the brakes; preemptor.h carries the decision out. Named after kube-scheduler's type. Thread: loop. Bounds: one
// question to the extenders and one preemption per pod; kBrakedTriesMax nodes are tried while brakes hold. Source:
// Kubernetes docs, "Pod Priority and Preemption"; spec "Scheduler and workloads", 8.
#pragma once

#include "api/object/disruption_budget.h"
#include "base/rng.h"
#include "client/api_client.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "controllers/scheduling/extender_calls.h"
#include "controllers/scheduling/preemptor.h"
#include "controllers/scheduling/unschedulable_pods.h"
#include "policy/lifecycle/brakes.h"
#include "policy/scheduling/placer.h"
#include "policy/scheduling/pod_queue.h"
#include "policy/scheduling/pod_volumes.h"
#include "policy/scheduling/preemption.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {

class PreemptionEvaluator {
 public:
  using PodPtr = scheduling::PodPtr;
  using BudgetPtr = std::shared_ptr<const api::PodDisruptionBudget>;

  /// The parts of the scheduler that a preemption uses; they must outlive this.
  struct Parts {
    client::ApiClient& client;
    const client::Informer<api::Pod>& pods;
    const client::Informer<api::PodDisruptionBudget>& budgets;
    scheduling::Placer& placer;
    scheduling::PodQueue& queue;
    UnschedulablePods& refused;
    ExtenderCalls& extender_calls;
    const telemetry::Log& log;
  };

  struct Hooks {
    /// The present pod; nullptr: it no longer waits for a node.
    std::function<PodPtr(const PodPtr& pod)> still_waiting;
    std::function<scheduling::VolumeView()> volumes_now;
    /// The pods that count on a node.
    std::function<std::vector<PodPtr>(const std::string& node)> pods_on;
    /// True while extenders filter the nodes for the pod: it may be about to get a free one.
    std::function<bool(const std::string& pod_uid)> has_cycle;
    std::function<client::EventRecorder&(const api::Pod& pod)> events_of;
    /// The node is promised to the pod; empty: none is. `counts_on`: the pod counts on that node from now on.
    std::function<void(const std::string& node, const PodPtr& pod, std::string_view counts_on)> promise;
    /// Counts the promise that the status of a pod shows.
    std::function<void(const PodPtr& pod)> restore_promise;
    /// Reports a condition of the pod, as PodConditions::report().
    std::function<void(const PodPtr& pod, const std::string& message, std::optional<std::string> promise, Now now)>
        report;
  };

  struct Options {
    lifecycle::BrakeConfig brakes;
    bool respects_budgets = false;
  };

  PreemptionEvaluator(Parts parts, Options options, Rng search, telemetry::Registry& metrics, Hooks hooks);
  PreemptionEvaluator(const PreemptionEvaluator&) = delete;
  PreemptionEvaluator& operator=(const PreemptionEvaluator&) = delete;

  /// True while a preemption is under way for the pod.
  bool is_preempting(const std::string& pod_uid) const { return preemptor_.is_under_way(pod_uid); }

  /// True while the pod's victims are evaluated, by the rules or by extenders.
  bool is_under_way(const std::string& pod_uid) const { return is_preempting(pod_uid) || reviews_.contains(pod_uid); }

  /// Counts a search for victims, with or without a result.
  void count_attempt() { preemptor_.count_attempt(); }

  /// The victims of a preemption for the pod; `refused`: the refusals of the nodes.
  scheduling::Preemption decide(const api::Pod& pod, const scheduling::Placement& refused,
                                const scheduling::VolumeFilter& volumes);
  /// False if no extender has a say in the victims. Else conclude() follows. `message`: as there.
  bool ask_extenders(const PodPtr& pod, const std::string& message, const scheduling::Preemption& decided);
  /// Starts the decided preemption, or reports why the pod waits. `message`: the refusals of the nodes, as in its
  /// status.
  void conclude(const PodPtr& pod, const std::string& message, const scheduling::Preemption& decided, bool by_extenders,
                Now now);

  void on_pod(const PodPtr& before, const PodPtr& after) { preemptor_.on_pod(before, after); }

  /// Forgets the calls about a pod that was deleted.
  void erase(const std::string& pod_uid) { reviews_.erase(pod_uid); }

  /// Requeues all refused pods if the budget may allow more disruptions than before.
  void on_budget(const BudgetPtr& before, const BudgetPtr& after);

 private:
  /// A pod, while extenders choose its victims.
  struct VictimReview {
    PodPtr pod;
    std::string message;  // the refusals of the nodes, as in its status
    api::Json document;
    std::vector<scheduling::PreemptionCandidate> candidates;
    std::vector<std::size_t> extenders;
    std::size_t next = 0;
  };

  using ReviewPtr = std::shared_ptr<VictimReview>;

  // The calls of the extenders, in order.
  void on_pod_read(const ReviewPtr& review, const Result<api::Json>& document, Now now);
  void ask_next(const ReviewPtr& review, Now now);
  void on_victims(const ReviewPtr& review, const Result<std::string>& body, Now now);
  bool is_current(const ReviewPtr& review) const;

  void begin(Preemptor::Plan plan, const std::string& message, Now now);
  bool holds(const Preemptor::Plan& plan);
  bool extended_holds(const api::Pod& asking, const Preemptor::Plan& plan);
  void on_withdrawn(const Preemptor::Plan& plan, Now now);
  scheduling::BudgetsByNamespace budgets_now() const;

  Parts parts_;
  Hooks hooks_;
  bool respects_budgets_;
  Rng search_;  // where the search for victims begins
  Preemptor preemptor_;
  std::map<std::string, ReviewPtr> reviews_;  // by uid of the pod
};

}  // namespace spillway::controllers
