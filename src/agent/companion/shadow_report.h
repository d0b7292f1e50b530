// Reports of a companion in shadow mode: the evictions that it would have made beside those of the kubelet, in metrics,
// journal and log.
// Thread: loop. Source: docs/adr/0007-companion.md.
#pragma once

#include "agent/companion/kubelet_settings.h"
#include "agent/companion/shadow_ledger.h"
#include "agent/contract/decision_log.h"
#include "api/object/pod.h"
#include "policy/eviction/decide.h"
#include "policy/reason.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

/// True if the pod failed with reason Evicted for a resource that the companion evaluates too.
bool is_eviction_by_kubelet(const api::Pod& pod, Disks disks);
/// "memory" of "The node was low on resource: memory. ..."; empty: it was evicted for something else.
std::string resource_of_eviction(const std::string& message);

class ShadowReport {
 public:
  /// `metrics` may be null.
  ShadowReport(Duration window, std::string node, DecisionLog& decisions, telemetry::Registry* metrics,
               telemetry::Log log);

  bool is_open() const { return ledger_.is_open(); }

  std::optional<Instant> next_due() const { return ledger_.next_due(); }

  void predict(const eviction::EvictPod& action, Now now);
  /// `current`: the shadow's decision at the time when the kubelet evicted the pod.
  void observe(const api::Pod& evicted, std::optional<policy::Decision> current, Now now);
  void expire(Now now);

 private:
  void report_outcomes(const std::vector<ShadowOutcome>& outcomes, Now now);
  void record_kubelet_only(const ShadowOutcome& outcome);

  std::string node_;
  DecisionLog& decisions_;
  telemetry::Registry* metrics_;
  telemetry::Log log_;
  ShadowLedger ledger_;
  std::map<std::string, policy::Decision> own_decisions_;  // by uid of a pod that the kubelet evicted, until compared
};

}  // namespace spillway::agent
