// The scheduler: binds pods without a node, one decision after the other, by priority and age, to the node the rules of
// policy/scheduling choose. An engine of its own, because it also runs alone. This class follows the caches and tries
// the pods in their order; its parts are:
//   - unschedulable_pods.h: refused pods, and the changes that requeue them;
//   - pod_conditions.h: events and conditions that say why a pod waits;
//   - binding_cycles.h: pods that have a node, until they are bound;
//   - volume_binding.h: claims that get a volume when their pod is placed; the pod is bound once they are;
//   - extender_cycles.h: pods that concern extenders;
//   - preemption_evaluator.h: pods of lower priority that leave for a refused one.
// Thread: loop. Bounds: 64 bindings in flight, 16 pods that extenders are asked about. A pod that fits
// nowhere waits for a change of the cluster that may let it in (queueing_hints.h), or five minutes, and then for the
// rest of its back-off; one whose claims are given volumes, for ten minutes. Source: Kubernetes docs, "Kubernetes
// Scheduler"; spec "Pod admission", scheduler.
#pragma once

#include "api/object/disruption_budget.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "api/object/storage.h"
#include "base/rng.h"
#include "client/api_client.h"
#include "client/engine.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/wake_up.h"
#include "policy/lifecycle/brakes.h"
#include "policy/scheduling/extender.h"
#include "policy/scheduling/pod_queue.h"
#include "policy/scheduling/profile.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::scheduling {

struct Placement;
class PodVolumes;
struct VolumeView;

}  // namespace spillway::scheduling

namespace spillway::controllers {

struct ExtenderCall;

class Scheduler final : public client::ApiEngine {
 public:
  struct Options {
    /// At least one profile, each with another scheduler name.
    std::vector<scheduling::Profile> profiles{scheduling::Profile()};
    scheduling::Backoff backoff;
    std::size_t bindings_max = 64;
    Duration unschedulable_retry = minutes(5);  // a refused pod gets another turn although nothing changed
    /// The machine's clock, to measure the scheduler's work; empty: not measured.
    std::function<Instant()> stopwatch;
    Duration claims_timeout = seconds(600);
    lifecycle::BrakeConfig brakes;  // limits for the deletions of a preemption
    bool respect_budgets = false;   // a preemption breaks no disruption budget
    std::vector<scheduling::Extender> extenders;
    std::size_t extended_max = 16;  // pods for which extenders are called at once
  };

  Scheduler(Options options, Rng rng, telemetry::Log log, telemetry::Registry& metrics);
  ~Scheduler() override;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  std::string_view name() const override { return "scheduler"; }

  void start(Now now) override;
  void on_api_event(const client::ApiEvent& event, Now now) override;
  void on_wakeup(Now now) override;

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

  /// Questions to extenders since the last call, in order; each is answered once.
  std::vector<ExtenderCall> take_extender_calls();

  /// The answer with any status code, or an error if there is none.
  void on_extender_answer(std::uint64_t id, const Result<api::Response>& response, Now now);

  /// Pods without a node: waiting for their turn or for the end of their back-off, and refused by every node.
  std::size_t waiting() const { return queue_.active() + queue_.backing_off(); }

  std::size_t unschedulable() const;

  bool synced() const { return client_.synced(); }

  /// The number of waiting pods, by the cause of their wait, and the first kPodsShownMax of them by name.
  /// scheduler_report.cc
  api::Json waiting_document(Now now) const;
  /// "NAMESPACE/NAME"; nullopt: the pod does not wait for a node, or belongs to another scheduler.
  std::optional<api::Json> waiting_pod_document(const client::ObjectKey& key, Now now) const;

  static constexpr std::size_t kPodsShownMax = 500;

 private:
  /// Caches and parts that only the scheduler itself uses (scheduler_parts.h).
  struct Parts;

  using PodPtr = std::shared_ptr<const api::Pod>;
  using ClaimPtr = std::shared_ptr<const api::PersistentVolumeClaim>;
  using VolumePtr = std::shared_ptr<const api::PersistentVolume>;
  using ClassPtr = std::shared_ptr<const api::StorageClass>;

  /// True if the pod waits for a node, and a profile is for it; it may have scheduling gates.
  bool is_pending(const api::Pod& pod) const;
  bool is_mine(const api::Pod& pod) const;
  /// Events are recorded in the name of the scheduler that the pod names.
  client::EventRecorder& events_of(const api::Pod& pod);
  void on_pod(const PodPtr& before, const PodPtr& after, Now now);
  void on_node(const std::shared_ptr<const api::Node>& before, const std::shared_ptr<const api::Node>& after);
  /// The event's name in kube-scheduler; empty: the pod belongs to another scheduler.
  std::string_view event_of(const PodPtr& before, const PodPtr& after) const;
  /// The node a pod counts on: bound, or assumed while its binding is on the way. Empty: none.
  std::string node_of(const api::Pod& pod) const;
  void recount(const std::string& node);
  /// The node is promised to the pod; empty: none is. Others may have the one that it was promised before, unless it
  /// counts on that one from now on.
  void promise_node(const std::string& node, const PodPtr& pod, std::string_view counts_on = {});
  void update_promise(const PodPtr& before, const PodPtr& after);
  void update_promised_labels(const PodPtr& before, const PodPtr& after);
  void schedule(Now now);
  void report_refused_lists();
  void place_pods(Now now);
  /// The pod has that node from now on, and is bound to it.
  void start_binding(const PodPtr& pod, const scheduling::Placement& placement, const scheduling::PodVolumes& volumes,
                     Now now);
  /// Also counts the cost of the placement.
  scheduling::Placement place(const api::Pod& pod, const scheduling::VolumeFilter& volumes);
  /// The present state of volumes.
  scheduling::VolumeView volumes_now() const;
  /// The present version of the pod; nullptr: it is deleted, has a node, or belongs to another scheduler.
  PodPtr still_waiting(const PodPtr& pod) const;

  /// Counts the pod on the node until the binding is seen, or give_up() is called.
  void assume(const api::Pod& pod, const std::string& node);
  /// Takes the assumption back; the pod is tried again after its back-off.
  void give_up(const PodPtr& pod, const std::string& node, Now now);

  void on_claim(const ClaimPtr& before, const ClaimPtr& after, Now now);
  void on_volume(const VolumePtr& before, const VolumePtr& after, Now now);
  void on_class(const ClassPtr& before, const ClassPtr& after);
  /// The pods that count on a node.
  std::vector<PodPtr> pods_on(const std::string& node) const;
  void refuse(const PodPtr& pod, const scheduling::Placement& placement, const scheduling::VolumeFilter& volumes,
              Now now);
  /// An extender that may not be passed over did not answer.
  void on_extender_failed(const PodPtr& pod, const Error& error, Now now);

  Options options_;
  telemetry::Log log_;
  client::ApiClient client_;
  client::Informer<api::Node> nodes_;
  client::Informer<api::Pod> pods_;
  client::Informer<api::PodDisruptionBudget> budgets_;
  std::map<std::string, client::EventRecorder, std::less<>> events_;  // by scheduler
  std::set<const client::InformerBase*> refused_lists_;               // which have been logged
  std::map<std::string, std::set<client::ObjectKey>> pods_by_node_;
  std::size_t pods_on_nodes_ = 0;               // pods on all nodes
  std::map<std::string, std::string> assumed_;  // pod uid → node

  scheduling::PodQueue queue_;
  client::WakeUp backoff_over_;
  std::set<client::ObjectKey> gated_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace spillway::controllers
