// Resizes of pods that run: which are admitted and when, what of them is in force, and what the pod's status says about
// them. The allocated resources are what the node works with; they and those in force survive the agent.
// Thread: loop. Invariants: an allocation is saved before it is acted on (the host waits for
// the file); one ResizePod per pod is under way, and until it is done the file says nothing about what is in force.
// Bounds: one entry per pod; a pass over the pending resizes checks each once. Source: Kubernetes docs, "Resize CPU and
// Memory Resources assigned to Containers"; KEP-1287; spec "Pod admission", 2.
#pragma once

#include "agent/contract/context.h"
#include "agent/pod_state/pod_status.h"
#include "agent/pod_state/pod_worker.h"
#include "agent/resizes/resize_metrics.h"
#include "agent/resizes/resource_book.h"
#include "api/json/json.h"
#include "api/object/pod.h"
#include "base/time.h"
#include "client/api_client.h"
#include "client/event_recorder.h"
#include "policy/admission/resize.h"
#include "policy/containers/pod_resize.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

class PodResizes {
 public:
  /// Port: the pods of the node.
  class Pods {
   public:
    virtual ~Pods() = default;
    /// Pods whose requests count, in namespace/name order.
    virtual std::vector<const api::Pod*> active() const = 0;
    /// Room that becomes free is for another pod: nothing is allocated meanwhile.
    virtual bool is_preempting() const = 0;
    /// Called when the pod's resources, its resize conditions or the resources in force have changed.
    virtual void on_resize(const std::string& uid, Now now) = 0;
  };

  enum class Existed : std::uint8_t { kNo, kYes };

  PodResizes(AgentContext& context, std::function<admission::NodeSituation()> situation, Pods& pods,
             ResourceBooks books, telemetry::Registry* metrics);

  /// The pod with the resources that are allocated to it; the same object if its spec has these.
  std::shared_ptr<const api::Pod> with_allocation(const std::shared_ptr<const api::Pod>& pod) const;

  /// The pod was admitted: its resources are allocated, unless an earlier process of this node did so. kYes: it was on
  /// the machine before, and its resize continues.
  void begin(const std::shared_ptr<const api::Pod>& pod, Existed existed, Now now);
  /// Amounts for the cgroup of a pod that has begun: what is in force and what is allocated both fit into them. Without
  /// limits if what is in force is unknown: an existing cgroup then keeps its own until the pod is resized.
  containers::GroupAmounts amounts_for(const api::Pod& allocated) const;
  /// The pod as the API server has it now.
  void observe(const std::shared_ptr<const api::Pod>& pod, Now now);
  /// A container is started with the resources of its definition.
  void on_starting(const std::string& uid, const api::Container& container);
  /// Carries out what is allocated and not in force yet, as far as the containers' states allow.
  void advance(const PodWorker& worker, Now now);
  void on_resized(const PodResized& event, Now now);
  /// Tries the pending resizes again, in their order.
  void retry(ResizeTrigger trigger, Now now);
  void forget(const std::string& uid);
  /// Entries of earlier processes for other pods are dropped.
  void keep_only(const std::set<std::string, std::less<>>& uids);

  ResizeReport report_of(const std::string& uid) const;
  /// Takes the commands that save changed resources; they must be carried out before all others of the step.
  std::vector<HostCommand> take_saves();
  /// State for people and /debug/spillway: no contract.
  api::Json state() const;

 private:
  struct Entry {
    std::shared_ptr<const api::Pod> wanted;  // as the API server has it
    std::optional<api::PodCondition> pending;
    std::optional<api::PodCondition> in_progress;
    bool waits = false;                      // among the resizes that are tried again
    bool is_in_force = false;                // the allocation is in force
    std::optional<std::uint64_t> under_way;  // id of the ResizePod without an answer
    // resources of the ResizePod under way; in force once it is answered
    containers::PodResources sent;
    std::optional<containers::GroupAmounts> pod_in_force;  // amounts of the pod's cgroup; nullopt: unknown
    std::optional<containers::GroupAmounts> pod_sent;
    std::optional<Instant> not_before;  // after a failure
    std::optional<Instant> began;
  };

  Entry* find(const std::string& uid);
  void try_one(Entry& entry, ResizeTrigger trigger, Now now);
  void allocate(Entry& entry, ResizeTrigger trigger, Now now);
  void refuse(Entry& entry, const admission::Answer& answer, Now now);
  void send_steps(const std::string& uid, Entry& entry, const PodWorker& worker, Now now);
  void fail(const std::string& uid, Entry& entry, const std::string& problem, Now now);
  void finish(Entry& entry, Now now);
  void set_timer(Now now);
  void count_present() const;
  void record(const api::Pod& pod, client::EventType type, std::string_view reason, std::string_view message, Now now);

  AgentContext& context_;
  std::function<admission::NodeSituation()> situation_;
  Pods& pods_;
  ResourceBooks books_;
  ResizeMetrics metrics_;
  std::map<std::string, Entry> entries_;  // by uid
  std::optional<client::ApiClient::TimerId> timer_;
  std::uint64_t last_id_ = 0;
  std::size_t waiting_ = 0;  // entries that wait
  bool retrying_ = false;
};

}  // namespace spillway::agent
