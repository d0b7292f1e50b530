#include "agent/pods/lifecycle_hooks.h"

#include "agent/pod_state/pod_addresses.h"

#include <utility>

namespace spillway::agent {

bool has_succeeded(const containers::ProbeVerdict& hook) {
  return hook.outcome == containers::ProbeOutcome::kSuccess || hook.outcome == containers::ProbeOutcome::kWarning;
}

void LifecycleHooks::run_post_start(const PodWorker& worker, const ContainerRun& run, const api::Handler& hook,
                                    PostStartDone done, Now now) {
  calls_.begin(
      place_of(worker, run, containers::HttpPurpose::kLifecycle, context_.machine), hook, kHookTimeMax,
      [this, uid = worker.uid(), name = run.spec->name, attempt = run.restart_count, done = std::move(done)](
          const containers::ProbeVerdict& verdict, Now then) {
        PodWorker* again = pods_.find(uid);
        ContainerRun* same = again == nullptr ? nullptr : again->find_run(name);
        if (same == nullptr || same->restart_count != attempt || same->state != ContainerRun::State::kStarting) return;
        record_fallback(*again, verdict, then);
        done(*again, *same, verdict, then);
      },
      now);
}

void LifecycleHooks::run_pre_stop(const PodWorker& worker, const ContainerRun& run, Duration grace,
                                  std::function<void(Now)> done, Now now) {
  const auto hook = api::hook_of(*run.spec, "preStop");
  if (!hook) return done(now);
  calls_.begin(
      place_of(worker, run, containers::HttpPurpose::kLifecycle, context_.machine), *hook, grace,
      [this, uid = worker.uid(), name = run.spec->name, done = std::move(done)](
          const containers::ProbeVerdict& verdict, Now then) { on_pre_stop(uid, name, verdict, done, then); },
      now);
}

void LifecycleHooks::on_pre_stop(const std::string& uid, const std::string& container,
                                 const containers::ProbeVerdict& verdict, const std::function<void(Now)>& done,
                                 Now now) {
  const PodWorker* worker = pods_.find(uid);
  if (worker == nullptr) return;
  record_fallback(*worker, verdict, now);
  if (!has_succeeded(verdict)) {
    context_.log.info("preStop hook failed", {{"pod_uid", uid}, {"container", container}, {"error", verdict.output}});
    events_.record(*worker, container, client::EventType::kWarning, "FailedPreStopHook", "PreStopHook failed", now);
  }
  done(now);
}

/// Records that an HTTPS hook was answered in plain HTTP.
void LifecycleHooks::record_fallback(const PodWorker& worker, const containers::ProbeVerdict& verdict, Now now) {
  if (verdict.outcome != containers::ProbeOutcome::kWarning) return;
  events_.record(worker, {}, client::EventType::kWarning, "LifecycleHTTPFallback", verdict.output, now);
}

}  // namespace spillway::agent
