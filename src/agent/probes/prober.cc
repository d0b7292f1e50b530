#include "agent/probes/prober.h"

#include <algorithm>

namespace spillway::agent {
namespace {

using containers::ProbeKind;
using containers::ProbeRun;

Duration period_of(const api::Probe& probe) {
  return seconds(std::clamp<std::int64_t>(probe.period_seconds, 1, 86'400));
}

Duration timeout_of(const api::Probe& probe) {
  return seconds(std::clamp<std::int64_t>(probe.timeout_seconds, 1, 86'400));
}

}  // namespace

void Prober::add(const api::Pod& pod, Now now) {
  const auto add_all = [&](const api::Container& container) {
    add({pod.metadata.uid, container.name, ProbeKind::kStartup}, container.startup_probe, now);
    add({pod.metadata.uid, container.name, ProbeKind::kReadiness}, container.readiness_probe, now);
    add({pod.metadata.uid, container.name, ProbeKind::kLiveness}, container.liveness_probe, now);
  };
  for (const api::Container& container : pod.spec.init_containers) {
    if (api::is_sidecar(container)) add_all(container);
  }
  for (const api::Container& container : pod.spec.containers) add_all(container);
}

void Prober::add(const Key& key, const api::Json& document, Now now) {
  auto probe = api::probe_of(document);
  if (!probe || workers_.contains(key)) return;
  const containers::ProbeThresholds thresholds{.initial_delay_seconds = probe->initial_delay_seconds,
                                               .success = probe->success_threshold,
                                               .failure = probe->failure_threshold};
  Worker& worker =
      workers_.emplace(key, Worker{ProbeRun(std::get<ProbeKind>(key), thresholds), *std::move(probe), {}, 0})
          .first->second;
  const Duration period = period_of(worker.probe);
  const bool fresh = now.mono - started_ < period;
  arm(key, worker, fresh ? now.mono + Duration(rng_.below(static_cast<std::uint64_t>(period.count()))) : now.mono);
}

void Prober::remove(const std::string& uid) {
  for (auto it = workers_.lower_bound({uid, {}, {}}); it != workers_.end() && std::get<0>(it->first) == uid;) {
    if (it->second.timer) context_.api.cancel(*it->second.timer);
    it = workers_.erase(it);
  }
}

void Prober::resume(const std::string& uid, const std::string& container, const std::string& id, Said said) {
  using containers::ProbeResult;
  const auto resume_one = [&](ProbeKind kind, ProbeResult result) {
    const auto found = workers_.find({uid, container, kind});
    if (found != workers_.end()) found->second.run.resume(id, result);
  };
  if (said.started) resume_one(ProbeKind::kStartup, ProbeResult::kSuccess);
  resume_one(ProbeKind::kReadiness, said.ready ? ProbeResult::kSuccess : ProbeResult::kFailure);
}

void Prober::wake(const std::string& uid, const std::string& container, Now now) {
  for (const ProbeKind kind : {ProbeKind::kStartup, ProbeKind::kReadiness}) {
    const auto found = workers_.find({uid, container, kind});
    if (found == workers_.end() || found->second.tries > 0) continue;
    arm(found->first, found->second, now.mono);
  }
}

void Prober::arm(const Key& key, Worker& worker, Instant due) {
  if (worker.timer) context_.api.cancel(*worker.timer);
  worker.timer = context_.api.at(due, [this, key](Now now) { run_once(key, now); });
}

// The key may be the map's, or that of the action that calls this: it is copied.
void Prober::run_once(Key key, Now now) {
  const auto found = workers_.find(key);
  if (found == workers_.end()) return;
  Worker& worker = found->second;
  worker.timer.reset();
  arm(key, worker, now.mono + period_of(worker.probe));
  if (worker.tries > 0) return;  // the last call is not over
  const auto& [uid, container, kind] = key;
  const auto seen = pods_.probed_container(uid, container, now);
  switch (seen ? worker.run.begin(*seen) : ProbeRun::Turn::kEnd) {
    case ProbeRun::Turn::kWait:
      return;
    case ProbeRun::Turn::kEnd:
      context_.api.cancel(*worker.timer);
      workers_.erase(found);
      return;
    case ProbeRun::Turn::kProbe:
      call(key, worker, now);
  }
}

void Prober::call(const Key& key, Worker& worker, Now now) {
  ++worker.tries;
  const auto& [uid, container, kind] = key;
  calls_.begin(
      pods_.place_of(uid, container), worker.probe.handler, timeout_of(worker.probe),
      [this, key](const containers::ProbeVerdict& verdict, Now then) { on_done(key, verdict, then); }, now);
}

void Prober::on_done(Key key, const containers::ProbeVerdict& verdict, Now now) {
  const auto found = workers_.find(key);
  if (found == workers_.end()) return;
  Worker& worker = found->second;
  if (verdict.outcome == containers::ProbeOutcome::kError && worker.tries < containers::kProbeTries)
    return call(key, worker, now);
  worker.tries = 0;
  const auto& [uid, container, kind] = key;
  const bool changed = worker.run.finish(verdict.outcome);
  if (const auto event = containers::probe_event(kind, verdict.outcome, verdict.output))
    pods_.on_probe_event(uid, container, *event, now);
  if (changed) pods_.on_probe_result(std::string(uid), kind, now);
}

containers::ProbeVerdicts Prober::verdicts(const std::string& uid, const std::string& container,
                                           std::string_view id) const {
  return {.has_startup_probe = workers_.contains({uid, container, ProbeKind::kStartup}),
          .startup = result(uid, container, ProbeKind::kStartup, id),
          .has_readiness_probe = workers_.contains({uid, container, ProbeKind::kReadiness}),
          .readiness = result(uid, container, ProbeKind::kReadiness, id)};
}

std::optional<containers::ProbeResult> Prober::result(const std::string& uid, const std::string& container,
                                                      ProbeKind kind, std::string_view id) const {
  const auto found = workers_.find({uid, container, kind});
  return found == workers_.end() ? std::nullopt : found->second.run.result_of(id);
}

}  // namespace spillway::agent
