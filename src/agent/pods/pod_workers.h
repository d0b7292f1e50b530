// Runs the pods of the node: admits them, starts and restarts their containers, ends them with their grace, and reports
// their state. One worker per uid.
// Thread: loop. Invariants: a uid never starts again once it is being ended; a terminal phase is reported only after
// PodStopped; an object is deleted only after its terminal phase is written.
// Bounds: workers ≤ pods bound to this node. Source: Kubernetes docs, "Pod Lifecycle"; spec "Node agent", 14, 15.
#pragma once

#include "agent/contract/context.h"
#include "agent/contract/evictable_pods.h"
#include "agent/contract/journal.h"
#include "agent/devices/resource_managers.h"
#include "agent/node/shutdown_engine.h"
#include "agent/pod_state/notices.h"
#include "agent/pod_state/pod_events.h"
#include "agent/pod_state/pod_status_writer.h"
#include "agent/pod_state/pod_sync.h"
#include "agent/pod_state/pod_table.h"
#include "agent/pod_state/pod_timers.h"
#include "agent/pod_state/pod_worker.h"
#include "agent/pods/admission_queue.h"
#include "agent/pods/container_lifecycle.h"
#include "agent/pods/container_stops.h"
#include "agent/pods/found_pods.h"
#include "agent/pods/lifecycle_hooks.h"
#include "agent/pods/pod_probes.h"
#include "agent/pods/pod_removal.h"
#include "agent/pods/pod_sandboxes.h"
#include "agent/pods/pod_stop.h"
#include "agent/probes/handler_calls.h"
#include "agent/resizes/pod_resizes.h"
#include "agent/resizes/resource_book.h"
#include "agent/starts/container_starts.h"
#include "agent/starts/pod_creation.h"
#include "agent/volumes/pod_volumes.h"
#include "api/object/pod.h"
#include "client/object_cache.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace spillway::agent {

class PodWorkers final : public EvictablePods,
                         public ShutdownEngine::Pods,
                         private AdmissionQueue::Workers,
                         private PodResizes::Pods,
                         private PodSync {
 public:
  /// `situation`: the present input of admission. `history`: evictions that an earlier instance decided. `books`: the
  /// resources of the pods of earlier instances. `metrics` may be null.
  PodWorkers(AgentContext& context, Rng rng, ResourceManagers& managers, PodVolumes& volumes,
             std::function<admission::NodeSituation()> situation, std::span<const JournalEntry> history,
             DecisionLog& decisions, ResourceBooks books, telemetry::Registry* metrics);

  /// Takes over the pods that earlier processes of this node left on the machine. Call it before the first pod is
  /// added; pods added later adopt their containers.
  void take_over(const PodsFound& found) { found_.add(found); }

  /// Ends found pods that no worker has taken over. Called when all pods are known.
  void end_unclaimed() { found_.end_orphans(); }

  /// Takes over the pods listed first, oldest first. Changes before are part of them.
  void start(const client::ObjectCache<api::Pod>& pods, Now now);
  /// A change of the informer's cache; before start() it is ignored, and always if it is about a mirror.
  void on_pod(const client::ObjectCache<api::Pod>::Ptr& before, const client::ObjectCache<api::Pod>::Ptr& after,
              Now now);

  /// Sets the source of the Services that environment variables describe.
  void set_services(std::function<KnownServices()> services) { starts_.use_services(std::move(services)); }

  /// Adds a static pod: no API server admits it, and its status is written to its mirror pod.
  void add_static(const std::shared_ptr<const api::Pod>& pod, Now now);
  /// Ends a static pod with its grace and forgets it.
  void retire(const std::string& uid, Now now);
  /// Sets the mirror pod of the static pod `uid`; null: it has none.
  void set_mirror(const std::string& uid, const client::ObjectCache<api::Pod>::Ptr& mirror, Now now);

  void on_container_started(const ContainerStarted& event, Now now) { lifecycle_.on_started(event, now); }

  void on_container_start_failed(const ContainerStartFailed& event, Now now) { lifecycle_.on_start_failed(event, now); }

  void on_container_exited(const ContainerExited& event, Now now) {
    found_.on_exited(event);
    lifecycle_.on_exited(event, now);
  }

  void on_pod_stopped(const PodStopped& event, Now now);
  void on_volumes_ready(const std::string& uid, Now now);

  void on_sandbox_ran(const SandboxRan& event, Now now) { sandboxes_.on_ran(event, now); }

  void on_sandbox_lost(const SandboxLost& event, Now now) {
    found_.on_sandbox_lost(event.uid);
    sandboxes_.on_lost(event.uid, now);
  }

  void on_notice(const PodNotice& notice, Now now) {
    if (const PodWorker* worker = pods_.find(notice.uid)) events_.record(*worker, notice, now);
  }

  void on_http_answered(const HttpAnswered& event, Now now) { calls_.on_http_answered(event, now); }

  void on_ran(const RanInContainer& event, Now now) { calls_.on_ran(event, now); }

  void on_tcp_tried(const TcpTried& event, Now now) { calls_.on_tcp_tried(event, now); }

  void on_grpc_answered(const GrpcAnswered& event, Now now) { calls_.on_grpc_answered(event, now); }

  void on_resized(const PodResized& event, Now now) { resizes_.on_resized(event, now); }

  /// Forgets the resources of pods that are gone.
  void keep_resources_of(const std::set<std::string, std::less<>>& uids) { resizes_.keep_only(uids); }

  /// Commands that must be carried out before all others of this step.
  std::vector<HostCommand> take_saves() { return resizes_.take_saves(); }

  void evict(const eviction::EvictPod& action, Urgency urgency, Now now) override;
  void kill_now(const std::string& uid) override;
  /// Ends an admitted pod of which nothing has started yet: what it needs could not be had.
  void reject_admitted(const std::string& uid, const admission::Refusal& refusal, Now now);
  void shut_down(const std::string& uid, std::int64_t grace_seconds, Now now) override;
  bool is_reported(const std::string& uid) const override;

  /// True also for an unknown uid.
  bool is_finished(const std::string& uid) const override { return pods_.is_finished(uid); }

  /// Sets the features of the container runtime's handlers; until then they are unknown.
  void know_handlers(std::vector<RuntimeHandler> handlers) { starts_.use_handlers(std::move(handlers)); }

  /// Parts of a pod that may be removed from the machine.
  PodRemains remains_of(const std::string& uid) const;

  void on_volume_file_read(const VolumeFileRead& event, Now now) { starts_.on_file_read(event, now); }

  /// Called whenever a pod has no process left, for the first time.
  void when_finished(std::function<void(const std::string& uid, Now now)> listener) { on_finished_ = listener; }

  /// Called after a worker has been removed.
  void when_forgotten(std::function<void(const std::string& uid, Now now)> listener) { on_forgotten_ = listener; }

  /// Pods that were admitted and are not finished, in namespace/name order. Valid until the next event.
  std::vector<const api::Pod*> active() const override { return pods_.active(); }

  /// Pods, the queue before admission, statuses to be written; for people and /debug/spillway: no contract.
  api::Json state() const;

  /// All pods with the status that the agent reports, in namespace/name order.
  std::vector<api::Pod> all() const { return pods_.all(); }

 private:
  void seen(const std::shared_ptr<const api::Pod>& pod, Now now);
  void gone(const std::string& uid, Now now);
  void add(const std::shared_ptr<const api::Pod>& pod, Now now);
  bool claim(PodWorker& worker, Now now);
  bool was_admitted(const std::string& uid) const override;

  std::shared_ptr<const api::Pod> find_waiting(const std::string& uid) const override {
    return pods_.find_waiting(uid);
  }

  void begin(const std::string& uid, Now now) override;
  void refuse(const std::string& uid, const admission::Refusal& refusal, Now now) override;
  void preempt(const admission::Victim& victim, Now now) override;

  bool is_preempting() const override { return admission_.is_preempting(); }

  void on_resize(const std::string& uid, Now now) override;
  void sync(PodWorker& worker, Now now) override;
  void resume_static(PodWorker& worker, const api::PodStatus& reported, Now now);
  void exceed_deadline(PodWorker& worker, Now now);
  void forget(const std::string& uid, Now now);
  void report(PodWorker& worker, Now now) override;

  AgentContext& context_;
  ResourceManagers& managers_;
  PodVolumes& volumes_;
  PodTable pods_;
  PodEvents events_;
  FoundPods found_;
  HandlerCalls calls_;
  LifecycleHooks hooks_;
  ContainerStops stops_;
  PodProbes probes_;
  PodTimers timers_;
  PodSandboxes sandboxes_;
  PodStop stop_;
  ContainerLifecycle lifecycle_;
  PodStatusWriter status_;
  PodRemoval removal_;
  Notices notices_;
  std::function<void(const std::string&, Now)> on_finished_;
  std::function<void(const std::string&, Now)> on_forgotten_;
  AdmissionQueue admission_;
  PodResizes resizes_;
  PodCreation creation_;
  ContainerStarts starts_;
  std::map<std::string, ForcedEnd> decided_before_;  // evictions of an earlier instance, by uid
  bool started_ = false;
};

}  // namespace spillway::agent
