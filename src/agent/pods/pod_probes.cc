#include "agent/pods/pod_probes.h"

#include "agent/pod_state/pod_addresses.h"
#include "agent/pod_state/pod_status.h"
#include "agent/pods/pod_takeover.h"
#include "policy/containers/restart_rules.h"

#include <utility>

namespace spillway::agent {
namespace {

using containers::ProbeKind;

std::string id_of(const PodWorker& worker, const ContainerRun& run) {
  return container_id(worker.uid(), run.spec->name, run.restart_count);
}

/// The environment that references in a probe's command are expanded with.
Environment literal_env(const api::Container& container) {
  Environment made;
  for (const api::EnvVar& each : container.env) made.add(each.name, each.value);
  return made;
}

}  // namespace

PodProbes::PodProbes(AgentContext& context, Rng rng, HandlerCalls& calls, PodTable& pods, PodEvents& events,
                     PodSync& sync)
    : context_(context), pods_(pods), events_(events), sync_(sync), prober_(context, rng, calls, *this) {}

void PodProbes::resume(const PodWorker& worker, const api::PodStatus& reported) {
  for (const auto* list : worker.run_lists()) {
    for (const ContainerRun& run : *list) {
      const api::ContainerStatus* before = reported_status(reported, run.spec->name);
      if (run.state != ContainerRun::State::kRunning || run.container_id.empty()) continue;
      if (before == nullptr || before->container_id != run.container_id) continue;
      prober_.resume(worker.uid(), run.spec->name, container_id(worker.uid(), run.spec->name, run.restart_count),
                     {.started = before->started.value_or(false), .ready = before->ready});
    }
  }
}

void PodProbes::apply(PodWorker& worker) const {
  for (auto* list : worker.run_lists()) {
    for (ContainerRun& run : *list) {
      const bool running = run.state == ContainerRun::State::kRunning;
      const auto verdicts = prober_.verdicts(worker.uid(), run.spec->name, id_of(worker, run));
      run.started = containers::is_started(running, verdicts);
      run.ready = containers::is_ready(running, verdicts);
    }
  }
}

ProbesSeen PodProbes::results_of(const PodWorker& worker) const {
  ProbesSeen seen;
  for (const auto* list : worker.run_lists()) {
    for (const ContainerRun& run : *list) {
      if (run.state != ContainerRun::State::kRunning) continue;
      const std::string id = id_of(worker, run);
      if (const auto result = prober_.result(worker.uid(), run.spec->name, ProbeKind::kLiveness, id))
        seen.liveness.emplace(id, *result);
      if (const auto result = prober_.result(worker.uid(), run.spec->name, ProbeKind::kStartup, id))
        seen.startup.emplace(id, *result);
    }
  }
  return seen;
}

std::optional<containers::ProbedContainer> PodProbes::probed_container(const std::string& uid,
                                                                       const std::string& container, Now now) const {
  const PodWorker* worker = pods_.find(uid);
  const ContainerRun* run = worker == nullptr ? nullptr : worker->find_run(container);
  if (run == nullptr) return std::nullopt;
  containers::ProbedContainer seen;
  seen.pod_finished = worker->phase == WorkerPhase::kTerminated;
  seen.pod_deleted = worker->pod->metadata.deletion_timestamp || worker->phase == WorkerPhase::kTerminating;
  seen.never_restarts =
      !containers::may_restart(worker->pod->spec, *run->spec) && !api::may_restart_all(worker->pod->spec);
  const bool starting = run->state == ContainerRun::State::kStarting;
  if (starting || (run->state == ContainerRun::State::kWaiting && !run->ended)) return seen;
  seen.id = id_of(*worker, *run);
  seen.running = run->state == ContainerRun::State::kRunning;
  seen.ended = !seen.running;
  if (seen.running && run->running_since) seen.age = now.mono - *run->running_since;
  seen.started = containers::is_started(seen.running, prober_.verdicts(uid, container, seen.id));
  return seen;
}

HandlerPlace PodProbes::place_of(const std::string& uid, const std::string& container) const {
  const PodWorker* worker = pods_.find(uid);
  const ContainerRun* run = worker == nullptr ? nullptr : worker->find_run(container);
  if (run == nullptr) return {};
  HandlerPlace place = agent::place_of(*worker, *run, containers::HttpPurpose::kProbe, context_.machine);
  place.expand = [literal = literal_env(*run->spec)](std::string_view word) { return expand(word, literal); };
  return place;
}

void PodProbes::on_probe_event(const std::string& uid, const std::string& container,
                               const containers::ProbeEvent& event, Now now) {
  const PodWorker* worker = pods_.find(uid);
  if (worker != nullptr)
    events_.record(*worker, container, client::EventType::kWarning, event.reason, event.message, now);
}

/// Only failures of liveness have consequences. Results of the other probes are reported before any action.
void PodProbes::on_probe_result(const std::string& uid, ProbeKind kind, Now now) {
  PodWorker* worker = pods_.find(uid);
  if (worker == nullptr) return;
  if (kind == ProbeKind::kStartup) {
    for (const auto* list : std::as_const(*worker).run_lists())
      for (const ContainerRun& run : *list) prober_.wake(uid, run.spec->name, now);
  }
  sync_.sync_or_report(*worker, now);
}

}  // namespace spillway::agent
