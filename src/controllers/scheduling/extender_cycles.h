// Scheduling cycles of the pods that concern extenders: the rules filter the nodes, the extenders filter and score the
// rest, and what they allow is placed by the rules as the cluster is by then. Pods wait in line by priority; others are
// scheduled meanwhile.
// Thread: loop. Bounds: one cycle per pod; the scheduler says how many at once. Source: Kubernetes docs, "Scheduler
// extender"; spec "Scheduler and workloads", 9.
#pragma once

#include "client/api_client.h"
#include "client/informer.h"
#include "controllers/scheduling/extender_calls.h"
#include "controllers/scheduling/unschedulable_pods.h"
#include "policy/scheduling/pending_pod.h"
#include "policy/scheduling/placer.h"
#include "policy/scheduling/pod_queue.h"
#include "policy/scheduling/pod_volumes.h"
#include "telemetry/log.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace spillway::controllers {

class ExtenderCycles {
 public:
  using PodPtr = scheduling::PodPtr;

  /// The parts of the scheduler that a cycle uses; they must outlive it.
  struct Parts {
    client::ApiClient& client;
    const client::Informer<api::Pod>& pods;
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
    /// The pod has that node from now on.
    std::function<void(const PodPtr& pod, const scheduling::Placement& placement, const scheduling::PodVolumes& volumes,
                       Now now)>
        on_placed;
    std::function<void(const PodPtr& pod, const scheduling::Placement& placement,
                       const scheduling::VolumeFilter& volumes, Now now)>
        on_refused;
    /// An extender that may not be passed over did not answer.
    std::function<void(const PodPtr& pod, const Error& error, Now now)> on_failed;
  };

  ExtenderCycles(Parts parts, Hooks hooks) : parts_(parts), hooks_(std::move(hooks)) {}

  ExtenderCycles(const ExtenderCycles&) = delete;
  ExtenderCycles& operator=(const ExtenderCycles&) = delete;

  /// True if extenders take part in choosing the pod's node.
  bool concerns(const api::Pod& pod) const;
  /// Queues the pod for its cycle.
  void line_up(const PodPtr& pod);
  /// Begins cycles until this number is under way.
  void begin(std::size_t cycles_max, Now now);

  /// Forgets the cycle of a pod that was deleted.
  void erase(const std::string& pod_uid) { cycles_.erase(pod_uid); }

  bool contains(const std::string& pod_uid) const { return cycles_.contains(pod_uid); }

  bool empty() const { return cycles_.empty(); }

  /// Pods in line, and cycles under way.
  std::size_t size() const { return line_.size() + cycles_.size(); }

  /// The pods of the cycles under way.
  std::vector<client::ObjectKey> keys() const;

 private:
  /// A pod, while extenders filter and score its nodes.
  struct Cycle {
    PodPtr pod;
    bool uses_promise = true;
    bool promised_alone = false;  // only the node that is promised to the pod was filtered
    api::Json document;
    scheduling::Survey survey;       // `refused` alone is read
    std::vector<std::string> names;  // the nodes that are left, sorted
    std::vector<std::size_t> filters;
    std::size_t next_filter = 0;
    std::map<std::string, std::int64_t> points;
    std::size_t unanswered = 0;
  };

  using CyclePtr = std::shared_ptr<Cycle>;

  // The steps of one cycle, in order.
  void begin_cycle(const PodPtr& pod, bool uses_promise, Now now);
  void on_pod_read(const CyclePtr& cycle, const Result<api::Json>& document, Now now);
  void filter_next(const CyclePtr& cycle, Now now);
  void on_filtered(const CyclePtr& cycle, const Result<std::string>& body, Now now);
  void score(const CyclePtr& cycle, Now now);
  void on_scored(const CyclePtr& cycle, std::size_t extender, const Result<std::string>& body, Now now);
  void place(const CyclePtr& cycle, Now now);
  // Other ends of a cycle.
  void refuse(const CyclePtr& cycle, Now now);
  void fail(const CyclePtr& cycle, const Error& error, Now now);

  bool is_current(const CyclePtr& cycle) const;

  Parts parts_;
  Hooks hooks_;
  std::map<std::string, CyclePtr> cycles_;  // by uid of the pod
  /// The next pods: negative priority, turn, key.
  std::set<std::tuple<std::int64_t, std::uint64_t, client::ObjectKey>> line_;
  std::uint64_t turns_ = 0;
  std::size_t next_node_ = 0;  // where the next search begins
};

/// True if the document is that of this very pod.
bool is_same_document(const Result<api::Json>& document, const api::Pod& pod);

}  // namespace spillway::controllers
