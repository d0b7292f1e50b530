// Runs the pods of the node: admits them, starts and restarts their containers, ends them with their grace, and reports
// their state. One worker per uid.
// Thread: loop. Invariants: a uid never starts again once it is being ended; a terminal phase is reported only after
// PodStopped; an object is deleted only after its terminal phase is written.
// Bounds: workers ≤ pods bound to this node. Source: Kubernetes docs, "Pod Lifecycle"; spec "Node agent", 14, 15.
#pragma once

#include "agent/containers/container_mounts.h"
#include "agent/containers/container_security.h"
#include "agent/contract/context.h"
#include "agent/contract/evictable_pods.h"
#include "agent/contract/journal.h"
#include "agent/devices/resource_managers.h"
#include "agent/node/shutdown_engine.h"
#include "agent/pods/admission_queue.h"
#include "agent/pods/container_plan.h"
#include "agent/pods/env_reader.h"
#include "agent/pods/notices.h"
#include "agent/pods/pod_status_writer.h"
#include "agent/pods/pod_worker.h"
#include "agent/probes/handler_calls.h"
#include "agent/probes/prober.h"
#include "agent/volumes/pod_volumes.h"
#include "api/object/pod.h"
#include "client/object_cache.h"

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace spillway::agent {

class PodWorkers final : public EvictablePods,
                         public ShutdownEngine::Pods,
                         private AdmissionQueue::Workers,
                         private ProbedPods {
 public:
  /// `situation`: the present input of admission. `history`: evictions that an earlier instance decided. `metrics` may
  /// be null.
  PodWorkers(AgentContext& context, Rng rng, ResourceManagers& managers, PodVolumes& volumes,
             std::function<admission::NodeSituation()> situation, std::span<const JournalEntry> history,
             DecisionLog& decisions, telemetry::Registry* metrics);

  /// Takes over the pods that earlier processes of this node left on the machine. Call it before the first pod is
  /// added; pods added later adopt their containers.
  void take_over(const PodsFound& found);
  /// Ends found pods that no worker has taken over. Called when all pods are known.
  void end_unclaimed();

  /// Takes over the pods listed first, oldest first. Changes before are part of them.
  void start(const client::ObjectCache<api::Pod>& pods, Now now);
  /// A change of the informer's cache; before start() it is ignored, and always if it is about a mirror.
  void on_pod(const client::ObjectCache<api::Pod>::Ptr& before, const client::ObjectCache<api::Pod>::Ptr& after,
              Now now);

  /// Sets the source of the Services that environment variables describe.
  void tell_of_services(std::function<KnownServices()> services) { services_ = std::move(services); }

  /// Adds a static pod: no API server admits it, and its status is written to its mirror pod.
  void add_static(const std::shared_ptr<const api::Pod>& pod, Now now);
  /// Ends a static pod with its grace and forgets it.
  void retire(const std::string& uid, Now now);
  /// Sets the mirror pod of the static pod `uid`; null: it has none.
  void set_mirror(const std::string& uid, const client::ObjectCache<api::Pod>::Ptr& mirror, Now now);

  void on_container_started(const ContainerStarted& event, Now now);
  void on_container_start_failed(const ContainerStartFailed& event, Now now);
  void on_container_exited(const ContainerExited& event, Now now);
  void on_pod_stopped(const PodStopped& event, Now now);
  void on_volumes_ready(const std::string& uid, Now now);
  void on_sandbox_ran(const SandboxRan& event, Now now);
  void on_sandbox_lost(const SandboxLost& event, Now now);
  void on_notice(const PodNotice& notice, Now now);

  void on_http_answered(const HttpAnswered& event, Now now) { calls_.on_http_answered(event, now); }

  void on_ran(const RanInContainer& event, Now now) { calls_.on_ran(event, now); }

  void on_tcp_tried(const TcpTried& event, Now now) { calls_.on_tcp_tried(event, now); }

  void on_grpc_answered(const GrpcAnswered& event, Now now) { calls_.on_grpc_answered(event, now); }

  void evict(const eviction::EvictPod& action, Urgency urgency, Now now) override;
  void kill_now(const std::string& uid) override;
  /// Ends an admitted pod of which nothing has started yet: what it needs could not be had.
  void reject_admitted(const std::string& uid, const admission::Refusal& refusal, Now now);
  void shut_down(const std::string& uid, std::int64_t grace_seconds, Now now) override;
  bool is_reported(const std::string& uid) const override;
  /// True also for an unknown uid.
  bool is_finished(const std::string& uid) const override;

  /// Sets the features of the container runtime's handlers; until then they are unknown.
  void know_handlers(std::vector<RuntimeHandler> handlers) { handlers_ = std::move(handlers); }

  /// Parts of a pod that may be removed from the machine.
  PodRemains remains_of(const std::string& uid) const;

  void on_volume_file_read(const VolumeFileRead& event, Now now) { env_reader_.on_file(event, now); }

  /// Called whenever a pod has no process left, for the first time.
  void when_finished(std::function<void(const std::string& uid, Now now)> listener) { on_finished_ = listener; }

  /// Called whenever a worker is not there any more.
  void when_forgotten(std::function<void(const std::string& uid, Now now)> listener) { on_forgotten_ = listener; }

  /// Pods that were admitted and are not finished, in namespace/name order. Valid until the next event.
  std::vector<const api::Pod*> active() const override;
  /// Pods, the queue before admission, statuses to be written; for people and /debug/spillway: no contract.
  api::Json state() const;
  /// All pods with the status that the agent reports, in namespace/name order.
  std::vector<api::Pod> all() const;

 private:
  enum class Retry { kNo, kYes };

  PodWorker* find(const std::string& uid);
  const PodWorker* find(const std::string& uid) const;
  void seen(const std::shared_ptr<const api::Pod>& pod, Now now);
  void gone(const std::string& uid, Now now);
  void add(const std::shared_ptr<const api::Pod>& pod, Now now);
  bool claim(PodWorker& worker, Now now);
  bool was_admitted(const std::string& uid) const override;
  std::shared_ptr<const api::Pod> find_waiting(const std::string& uid) const override;
  void begin(const std::string& uid, Now now) override;
  void refuse(const std::string& uid, const admission::Refusal& refusal, Now now) override;
  void preempt(const admission::Victim& victim, Now now) override;
  void sync(PodWorker& worker, Now now);
  void stop_run(PodWorker& worker, const PlannedStop& planned, Now now);
  void tell_to_end(PodWorker& worker, ContainerRun& run, Duration grace, Now now);
  void run_post_start(PodWorker& worker, ContainerRun& run, const api::Handler& hook, Now now);
  void on_post_start(const std::string& uid, const std::string& container, std::int32_t attempt,
                     const containers::ProbeJudgement& judgement, Now now);
  void tell_of_fallback(const PodWorker& worker, const containers::ProbeJudgement& judgement, Now now);
  void set_running(PodWorker& worker, ContainerRun& run, Now now);
  void run_pre_stop(const PodWorker& worker, const api::Container& container, Duration grace,
                    std::function<void(Now)> done, Now now);
  void advance_stop(PodWorker& worker, Now now);
  void give_up_order(PodWorker& worker);
  void on_gone_in_stop(PodWorker& worker, const std::string& container, Now now);
  void apply_probes(PodWorker& worker);
  ProbesSeen probes_seen(const PodWorker& worker) const;
  void resume_probes(const PodWorker& worker, const api::PodStatus& told);
  void resume_static(PodWorker& worker, const api::PodStatus& told, Now now);
  std::optional<containers::ProbedContainer> look(const std::string& uid, const std::string& container,
                                                  Now now) const override;
  HandlerPlace place_of(const std::string& uid, const std::string& container) const override;
  void on_probe_event(const std::string& uid, const std::string& container, const containers::ProbeEvent& event,
                      Now now) override;
  void on_probe_result(const std::string& uid, containers::ProbeKind kind, Now now) override;
  void start_containers(PodWorker& worker, const std::vector<ContainerRun*>& runs, Now now);
  void start_container(PodWorker& worker, ContainerRun& run, Now now);
  static std::size_t exec_bytes_beside(const PodWorker& worker, const ContainerRun& run);
  void refuse_as_too_large(PodWorker& worker, ContainerRun& run, std::string why, Now now);
  void refuse_start(PodWorker& worker, ContainerRun& run, StartRefusal refusal, Retry retry, Now now);
  void create_container(PodWorker& worker, ContainerRun& run, const EnvReader::Read& read, Now now);
  Outcome add_mounts(const PodWorker& worker, const api::Container& container, const Environment& environment,
                     StartContainer& start) const;
  RecursiveReadOnly recursion_of(const PodWorker& worker) const;
  Outcome add_resolver(const api::Pod& pod, StartContainer& start) const;
  void launch(StartContainer command, const Result<DeviceGrant>& devices, Now now);
  void arm_retry(PodWorker& worker, Instant due);
  void arm_deadline(PodWorker& worker);
  void exceed_deadline(PodWorker& worker, Now now);
  void cancel_timers(PodWorker& worker);
  void end(PodWorker& worker, ForcedEnd how, Now now);
  void terminate(PodWorker& worker, Now now);
  void shorten_grace(PodWorker& worker);
  void finish(PodWorker& worker, Now now);
  void delete_object(PodWorker& worker, Now now);
  void forget(const std::string& uid, Now now);
  void remove_content(PodWorker& worker);
  void report(PodWorker& worker, Now now);
  void record(const PodWorker& worker, const std::string& container, client::EventType type, std::string_view reason,
              std::string_view message, Now now);
  PodAddresses addresses_of(const PodWorker& worker) const;
  /// False: the sandbox is requested first, if the machine has sandboxes at all.
  bool has_sandbox(PodWorker& worker, Now now);
  void ask_for_sandbox(const PodWorker& worker);
  void fail_sandbox(PodWorker& worker, const std::string& problem, Now now);
  /// Stops the containers that still run in a lost sandbox.
  void leave_sandbox(PodWorker& worker, Now now);

  AgentContext& context_;
  ResourceManagers& managers_;
  PodVolumes& volumes_;
  EnvReader env_reader_;
  HandlerCalls calls_;
  Prober prober_;
  PodStatusWriter status_;
  Notices notices_;
  std::function<KnownServices()> services_;  // empty: no variables of Services
  std::function<void(const std::string&, Now)> on_finished_;
  std::function<void(const std::string&, Now)> on_forgotten_;
  AdmissionQueue admission_;
  std::map<std::string, PodWorker> workers_;  // by uid
  std::vector<RuntimeHandler> handlers_;
  std::map<std::string, FoundPod> found_;            // not taken over yet, by uid
  std::map<std::string, ForcedEnd> decided_before_;  // evictions of an earlier instance, by uid
  bool started_ = false;
};

}  // namespace spillway::agent
