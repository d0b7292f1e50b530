// Pods that no node took, and the changes of the cluster that may let them in: a change requeues those whose refusal it
// may lift (policy/scheduling/queueing_hints.h), and time requeues all of them.
// Thread: loop. Bounds: one entry per pod without a node. Source: Kubernetes docs, "Scheduling Framework",
// QueueingHint; spec "Scheduler and workloads", 1.
#pragma once

#include "api/object/pod.h"
#include "client/api_client.h"
#include "client/informer.h"
#include "controllers/scheduling/scheduler_timings.h"
#include "policy/scheduling/pending_pod.h"
#include "policy/scheduling/placer.h"
#include "policy/scheduling/pod_queue.h"
#include "policy/scheduling/preemption.h"
#include "policy/scheduling/queueing_hints.h"
#include "telemetry/log.h"

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {

class UnschedulablePods {
 public:
  using PodPtr = scheduling::PodPtr;

  /// The parts of the scheduler that decide what becomes of a refused pod; they must outlive this.
  struct Parts {
    client::ApiClient& client;
    const client::Informer<api::Pod>& pods;
    scheduling::Placer& placer;
    scheduling::PodQueue& queue;
    SchedulerTimings& timings;
    const telemetry::Log& log;
  };

  /// `retry_after`: a refused pod gets another turn then although nothing changed. `being_tried`: the pods that
  /// extenders are asked about.
  UnschedulablePods(Parts parts, Duration retry_after, std::function<std::vector<client::ObjectKey>()> being_tried);
  UnschedulablePods(const UnschedulablePods&) = delete;
  UnschedulablePods& operator=(const UnschedulablePods&) = delete;

  /// The message that was reported last of a refused pod; empty: none. Adds the pod.
  std::string& message_of(const client::ObjectKey& key) { return messages_[key]; }

  /// nullptr: the pod is not refused.
  const std::string* find_message(const client::ObjectKey& key) const;

  /// The pod has claims: changes of claims and volumes requeue it.
  void add_claimant(const client::ObjectKey& key) { claimants_.insert(key); }

  /// True if the pod depends on where other pods run: one more pod may let it in.
  void add_related(const client::ObjectKey& key) { related_.insert(key); }

  void forget(const client::ObjectKey& key);

  bool empty() const { return messages_.empty(); }

  std::size_t size() const { return messages_.size(); }

  /// Requeues the pods that the change may let in; each waits for the end of its back-off.
  void requeue(const scheduling::ClusterChange& change);
  /// Requeues all refused pods, whichever plug-in refused them. `event`: as for PodQueue::wake().
  void requeue_all(std::string_view event);
  /// Requeues the pods with claims.
  void requeue_claimants(std::string_view event);
  /// Requeues the pods that name that claim.
  void requeue_claimants_of(const client::ObjectKey& claim, std::string_view event);
  /// Sets the timer of the next retry, if a pod waits for it.
  void arm_retry();

 private:
  /// Measures the hints of every tenth pod; empty: not this one.
  scheduling::HintWatch hint_timing(const scheduling::ClusterChange& change);
  bool may_let_in(const client::ObjectKey& key, scheduling::FilterSet refused_by,
                  const scheduling::ClusterChange& change);
  /// Taken apart once, as long as the pod is the same.
  const scheduling::PendingPod& pending_of(const client::ObjectKey& key, const PodPtr& pod);

  struct Asking {
    PodPtr pod;
    scheduling::PendingPod pending;
  };

  Parts parts_;
  Duration retry_after_;
  std::function<std::vector<client::ObjectKey>()> being_tried_;
  std::map<client::ObjectKey, std::string> messages_;  // the last reported reason, by refused pod
  std::set<client::ObjectKey> claimants_;              // pods that have claims: refused, or in a round
  std::set<client::ObjectKey> related_;                // refused pods that depend on where others are
  std::map<client::ObjectKey, Asking> asking_;         // pods for which hints were evaluated
  bool retry_armed_ = false;
};

}  // namespace spillway::controllers
