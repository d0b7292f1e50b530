// The scheduler: binds pods without a node, one decision after the other, by priority and age, to the node that the
// rules of policy/scheduling choose. An engine of its own, because it also runs alone. A claim that waits for its first
// pod is given a volume when that pod is placed; the pod is bound once the claim is. A pod that fits nowhere may
// preempt pods of lower priority: preemptor.h. Extenders are called first for pods that concern them (extender_desk.h);
// other pods are scheduled meanwhile, and the answers are checked against the cluster at that time. Thread: loop.
// Bounds: 64 bindings in flight, 16 pods with calls of extenders. A pod that fits nowhere waits for a change of the
// cluster after which it may fit (queueing_hints.h), or five minutes, and then for the rest of its back-off; one whose
// claims are given volumes, for ten minutes. Source: Kubernetes docs, "Kubernetes Scheduler"; spec "Pod admission",
// scheduler.
#pragma once

#include "api/object/disruption_budget.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "base/rng.h"
#include "client/api_client.h"
#include "client/engine.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/wake_up.h"
#include "controllers/scheduling/attachment_cache.h"
#include "controllers/scheduling/extender_desk.h"
#include "controllers/scheduling/preemptor.h"
#include "controllers/scheduling/scheduler_metrics.h"
#include "controllers/scheduling/scheduler_timings.h"
#include "controllers/scheduling/surroundings_feed.h"
#include "controllers/shared/storage_cache.h"
#include "policy/lifecycle/brakes.h"
#include "policy/node_load.h"
#include "policy/scheduling/pending_pod.h"
#include "policy/scheduling/placer.h"
#include "policy/scheduling/pod_queue.h"
#include "policy/scheduling/pod_volumes.h"
#include "policy/scheduling/queueing_hints.h"
#include "policy/storage/pod_claims.h"
#include "telemetry/log.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace spillway::controllers {

class Scheduler final : public client::ApiEngine {
 public:
  struct Options {
    /// At least one profile, each of another scheduler.
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
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  std::string_view name() const override { return "scheduler"; }

  void start(Now now) override;
  void on_api_event(const client::ApiEvent& event, Now now) override;
  void on_wakeup(Now now) override;

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

  /// Questions to extenders since the last call, in order; each is answered once.
  std::vector<ExtenderCall> take_extender_calls() { return desk_.take_calls(); }

  /// The answer, whatever its code; or why there is none.
  void on_extender_answer(std::uint64_t id, const Result<api::Response>& response, Now now);

  /// Pods without a node: waiting for their turn or for the end of their back-off, and refused by every node.
  std::size_t waiting() const { return queue_.active() + queue_.backing_off(); }

  std::size_t unschedulable() const { return refused_.size(); }

  bool synced() const { return client_.synced(); }

  /// The number of waiting pods, by the cause of their wait, and the first kPodsShownMax of them by name.
  /// scheduler_report.cc
  api::Json waiting_document(Now now) const;
  /// "NAMESPACE/NAME"; nullopt: it waits for no node, or for none of ours.
  std::optional<api::Json> waiting_pod_document(const client::ObjectKey& key, Now now) const;

  static constexpr std::size_t kPodsShownMax = 500;

 private:
  using PodPtr = scheduling::PodPtr;
  using BudgetPtr = std::shared_ptr<const api::PodDisruptionBudget>;

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
  /// Requeues the refused pods that the change may let in, for when their back-off is over.
  void try_again(const scheduling::ClusterChange& change);
  /// Measures the hints of every tenth pod; empty: not this one.
  scheduling::HintWatch hint_timing(const scheduling::ClusterChange& change);
  bool may_let_in(const client::ObjectKey& key, scheduling::FilterSet refused_by,
                  const scheduling::ClusterChange& change);
  /// Taken apart once, as long as the pod is the same.
  const scheduling::PendingPod& pending_of(const client::ObjectKey& key, const PodPtr& pod);
  void forget_refusal(const client::ObjectKey& key);
  /// The same for all refused pods, whichever plug-in refused them.
  void try_all_again(std::string_view event);
  void arm_retry();
  /// The node is promised to the pod; empty: none is. Others may have the one that it was promised before, unless it
  /// counts on that one from now on.
  void promise_node(const std::string& node, const PodPtr& pod, std::string_view counts_on = {});
  void note_promise(const PodPtr& before, const PodPtr& after);
  void note_labels_of_promised(const PodPtr& before, const PodPtr& after);
  void schedule(Now now);
  void report_refused_lists();
  void place_pods(Now now);
  /// The pod has that node from now on, and is bound to it.
  void settle(const PodPtr& pod, const scheduling::Placement& placement, const scheduling::PodVolumes& volumes,
              Now now);
  /// Also counts the cost of the placement.
  scheduling::Placement place(const api::Pod& pod, const scheduling::VolumeFilter& volumes);
  /// The present state of volumes.
  scheduling::VolumeView volumes_now() const;
  /// The present version of the pod; nullptr: it is deleted, has a node, or belongs to another scheduler.
  PodPtr still_waiting(const PodPtr& pod) const;

  // scheduler_extenders.cc
  struct ExtenderRound;
  struct VictimRound;
  using RoundPtr = std::shared_ptr<ExtenderRound>;
  using VictimRoundPtr = std::shared_ptr<VictimRound>;
  /// True if extenders take part in choosing the pod's node.
  bool concerns_extenders(const api::Pod& pod) const;
  void line_up(const PodPtr& pod);
  void begin_rounds(Now now);
  void begin_round(const PodPtr& pod, bool heeds_promise, Now now);
  bool is_current(const RoundPtr& round) const;
  std::vector<client::ObjectKey> keys_of_rounds() const;
  void ask_next_filter(const RoundPtr& round, Now now);
  void on_filtered(const RoundPtr& round, const Result<std::string>& body, Now now);
  void ask_for_scores(const RoundPtr& round, Now now);
  void on_scored(const RoundPtr& round, std::size_t extender, const Result<std::string>& body, Now now);
  void end_round(const RoundPtr& round, Now now);
  void refuse_round(const RoundPtr& round, Now now);
  /// An extender that may not be passed over did not answer.
  void fail_round(const RoundPtr& round, const Error& error, Now now);
  void bind_by_extender(std::size_t extender, const PodPtr& pod, const std::string& node, Now now);
  bool ask_about_victims(const PodPtr& pod, const std::string& message, const scheduling::Preemption& decided, Now now);
  void ask_next_about_victims(const VictimRoundPtr& round, Now now);
  void on_victims(const VictimRoundPtr& round, const Result<std::string>& body, Now now);

  /// Counts the pod on the node until the binding is seen, or give_up() is called.
  void assume(const api::Pod& pod, const std::string& node);
  /// Takes the assumption back; the pod is tried again after its back-off.
  void give_up(const PodPtr& pod, const std::string& node, Now now);
  void bind(const PodPtr& pod, const std::string& node, Now now);
  void bind_by_api(const PodPtr& pod, const std::string& node, Now now);
  void on_bound(const PodPtr& pod, const std::string& node, const Outcome& outcome, Now now);
  /// First its claims: each gets its volume, and is waited for.
  struct ClaimWait;
  void bind_claims(const PodPtr& pod, const std::string& node, storage::ClaimPlan plan, Now now);
  void on_reserved(const std::shared_ptr<ClaimWait>& wait, const Outcome& outcome, Now now);
  void end_wait(const std::string& uid);
  /// The present version of the claim; nullptr: it is deleted.
  storage::ClaimPtr claim_now(const storage::ClaimPtr& claim);
  struct ClaimProgress;
  /// The progress of a claim that gets an existing volume.
  ClaimProgress progress_of_binding(const std::pair<storage::ClaimPtr, storage::VolumePtr>& binding);
  /// The progress of a claim whose volume is made for the node.
  ClaimProgress progress_of_provision(ClaimWait& wait, const storage::ClaimPtr& given);
  ClaimProgress progress_of(ClaimWait& wait, Now now);
  /// Requeues the pod, with the reason in its status.
  void fail_wait(const ClaimWait& wait, const std::string& why, Now now);
  /// Binds the pods whose claims are bound by now, and requeues those whose claims failed or that waited too long.
  void look_at_waits(Now now);
  void on_claim(const StorageCache::ClaimPtr& before, const StorageCache::ClaimPtr& after, Now now);
  void on_volume(const storage::VolumePtr& before, const storage::VolumePtr& after, Now now);
  void on_class(const StorageCache::ClassPtr& before, const StorageCache::ClassPtr& after);
  /// Pods with claims get another turn. `event`: as for PodQueue::wake().
  void try_claimants_again(std::string_view event);
  /// The pods that count on a node.
  std::vector<PodPtr> pods_on(const std::string& node) const;
  void refuse(const PodPtr& pod, const scheduling::Placement& placement, const scheduling::VolumeFilter& volumes,
              Now now);
  /// The victims of a preemption for the pod; `refused`: the refusals of the nodes.
  scheduling::Preemption decide(const api::Pod& pod, const scheduling::Placement& refused,
                                const scheduling::VolumeFilter& volumes);
  /// Starts the decided preemption, or reports why the pod waits. `message`: the refusals of the nodes, as in its
  /// status.
  void conclude(const PodPtr& pod, const std::string& message, const scheduling::Preemption& decided, bool by_extenders,
                Now now);
  void begin_preemption(Preemptor::Plan plan, const std::string& message, Now now);
  scheduling::BudgetsByNamespace budgets_now() const;
  /// Requeues all refused pods if the budget may allow more disruptions than before.
  void on_budget(const BudgetPtr& before, const BudgetPtr& after);
  bool preemption_holds(const Preemptor::Plan& plan);
  bool extended_preemption_holds(const api::Pod& asking, const Preemptor::Plan& plan);
  void on_preemption_withdrawn(const Preemptor::Plan& plan, Now now);
  /// Reports the reason why the pod waits, once; `promise`: the new nominated node, nullopt: unchanged.
  void report(const PodPtr& pod, const std::string& message, std::optional<std::string> promise, Now now,
              std::string_view reason = "Unschedulable");
  /// Writes the condition of a pod that waits. A failed write is repeated while the pod waits for the same reason;
  /// after the last of `tries` the next refusal writes it.
  void write_refusal(const PodPtr& pod, const std::string& message, const api::Json& patch, int tries);
  /// True if the last refusal of this very pod had that message, and no preemption is under way for it.
  bool still_waits(const api::Pod& pod, const std::string& message) const;

  Options options_;
  telemetry::Log log_;
  client::ApiClient client_;
  client::Informer<api::Node> nodes_;
  client::Informer<api::Pod> pods_;
  client::Informer<api::PodDisruptionBudget> budgets_;
  StorageCache storage_;
  AttachmentCache attachments_;
  std::map<std::string, client::EventRecorder, std::less<>> events_;  // by scheduler
  std::set<const client::InformerBase*> refused_lists_;               // lists whose refusal has been logged
  std::map<std::string, std::shared_ptr<ClaimWait>> waits_;           // by uid of the pod
  std::set<std::string> taken_;                                       // volumes that waiting pods get
  std::size_t waits_for_volumes_ = 0;                                 // entries of waits_ without open writes
  std::set<client::ObjectKey> claimants_;                             // pods that have claims: refused, or in a round
  std::set<client::ObjectKey> related_;                               // refused pods that depend on where others are
  scheduling::Placer placer_;
  SurroundingsFeed feed_;
  std::map<std::string, std::set<client::ObjectKey>> pods_by_node_;
  std::size_t pods_on_nodes_ = 0;               // in all of them
  std::map<std::string, std::string> assumed_;  // pod uid → node

  /// The attempt in which a node was found.
  struct Attempt {
    std::optional<scheduling::PodQueue::Course> course;
    Instant found{};
    bool sampled = false;  // its plug-ins are measured
  };

  std::map<std::string, Attempt> attempts_;  // attempts for assumed pods
  scheduling::PodQueue queue_;
  client::WakeUp backoff_over_;
  std::set<client::ObjectKey> gated_;
  std::map<client::ObjectKey, std::string> refused_;  // → the message already reported

  struct Asking {
    PodPtr pod;
    scheduling::PendingPod pending;
  };

  std::map<client::ObjectKey, Asking> asking_;  // pods for which hints were evaluated
  Rng search_;                                  // for the start of the search for victims
  Preemptor preemptor_;
  SchedulerMetrics scheduler_metrics_;
  SchedulerTimings timings_;
  ExtenderDesk desk_;
  std::map<std::string, RoundPtr> rounds_;               // by uid of the pod
  std::map<std::string, VictimRoundPtr> victim_rounds_;  // the same
  /// The next pods for extenders: negative priority, turn, key.
  std::set<std::tuple<std::int64_t, std::uint64_t, client::ObjectKey>> line_;
  std::uint64_t turns_ = 0;
  std::size_t next_node_ = 0;  // the start of the next search for extenders
  std::size_t bindings_ = 0;
  std::size_t extender_bindings_ = 0;  // bindings by extenders
  bool retry_armed_ = false;
};

}  // namespace spillway::controllers
