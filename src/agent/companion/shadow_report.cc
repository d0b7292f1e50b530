#include "agent/companion/shadow_report.h"

#include "policy/eviction/message.h"
#include "policy/eviction/signal.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace spillway::agent {
std::string resource_of_eviction(const std::string& message) {
  if (!message.starts_with(eviction::kLowOn)) return {};
  const std::string rest = message.substr(eviction::kLowOn.size());
  return rest.substr(0, rest.find('.'));
}

bool is_eviction_by_kubelet(const api::Pod& pod, Disks disks) {
  if (pod.status.phase != "Failed" || pod.status.reason != "Evicted") return false;
  const std::string resource = resource_of_eviction(pod.status.message);
  return std::ranges::any_of(eviction::kSignals, [&](eviction::Signal signal) {
    const bool disk = eviction::condition_of(signal) == eviction::Condition::kDiskPressure;
    return resource == eviction::resource_of(signal) && (!disk || disks == Disks::kWatched);
  });
}

ShadowReport::ShadowReport(Duration window, std::string node, DecisionLog& decisions, telemetry::Registry* metrics,
                           telemetry::Log log)
    : node_(std::move(node)), decisions_(decisions), metrics_(metrics), log_(std::move(log)), ledger_(window) {}

void ShadowReport::predict(const eviction::EvictPod& action, Now now) {
  if (metrics_ != nullptr) {
    metrics_
        ->counter("spillway_shadow_evictions_total", "Evictions a shadow would have carried out",
                  {{"eviction_signal", action.metric_label}})
        .add();
  }
  report_outcomes(ledger_.predict({.uid = action.uid, .pod = action.pod, .signal = action.metric_label, .at = now}),
                  now);
}

void ShadowReport::observe(const api::Pod& evicted, std::optional<policy::Decision> current, Now now) {
  policy::Decision decision = current ? *std::move(current) : policy::Decision{};
  decision.message = evicted.status.message;
  own_decisions_.insert_or_assign(evicted.metadata.uid, std::move(decision));
  report_outcomes(ledger_.observe({.uid = evicted.metadata.uid,
                                   .pod = evicted.key(),
                                   .signal = resource_of_eviction(evicted.status.message),
                                   .at = now}),
                  now);
}

void ShadowReport::expire(Now now) {
  report_outcomes(ledger_.expire(now.mono), now);
}

void ShadowReport::report_outcomes(const std::vector<ShadowOutcome>& outcomes, Now now) {
  for (const ShadowOutcome& outcome : outcomes) {
    const std::string_view kind = to_string(outcome.kind);
    const std::optional<Duration> after = outcome.kubelet_after();
    const bool agreed = outcome.kind == ShadowOutcomeKind::kAgreed;
    if (metrics_ != nullptr && agreed) {
      metrics_
          ->counter("spillway_shadow_agreements_total", "Evictions of which shadow and kubelet chose the same pod",
                    {{"eviction_signal", outcome.ours->signal}})
          .add();
    } else if (metrics_ != nullptr) {
      metrics_
          ->counter("spillway_shadow_disagreements_total", "Evictions in which shadow and kubelet differed",
                    {{"kind", kind}})
          .add();
    }
    log_.info("shadow and kubelet compared",
              {{"outcome", kind},
               {"ours", outcome.ours ? outcome.ours->pod.text() : "-"},
               {"kubelets", outcome.kubelets ? outcome.kubelets->pod.text() : "-"},
               {"kubelet_after_seconds", after ? fmt::format("{:.3f}", in_seconds(*after)) : "-"}});
    if (outcome.ours) {
      std::vector<policy::Fact> facts{{"shadow_outcome", std::string(kind)}};
      if (outcome.kubelets && !agreed) facts.push_back({"kubelet_evicted", outcome.kubelets->pod.text()});
      if (after) facts.push_back({"kubelet_after_seconds", in_seconds(*after)});
      decisions_.add_aftermath({.uid = outcome.ours->uid, .at = now.wall, .facts = std::move(facts)});
    }
    if (outcome.kind == ShadowOutcomeKind::kKubeletOnly) record_kubelet_only(outcome);
    if (outcome.kubelets) own_decisions_.erase(outcome.kubelets->uid);
  }
}

/// Records an eviction by the kubelet that we would not have made, with our numbers of that time.
void ShadowReport::record_kubelet_only(const ShadowOutcome& outcome) {
  const ShadowEviction& kubelets = *outcome.kubelets;
  policy::Decision decision = own_decisions_[kubelets.uid];
  decision.at = kubelets.at.wall;
  decision.by = node_;
  decision.area = policy::Area::kEviction;
  decision.verdict = policy::Verdict::kRests;
  decision.action = "evict";
  decision.subject = {.kind = "Pod", .ns = kubelets.pod.ns, .name = kubelets.pod.name, .uid = kubelets.uid};
  decision.reasons.insert(decision.reasons.begin(),
                          {policy::ReasonCode::kKubeletEvicted, {{"kubelet_message", decision.message}}});
  decision.cost = {{"shadow_outcome", std::string(to_string(outcome.kind))}};
  decisions_.record({.decision = std::move(decision), .eviction = {}});
}

}  // namespace spillway::agent
