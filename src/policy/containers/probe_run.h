// The runs of one probe of one container: when it has to run, and what its outcomes come to. Time and what is known of
// the container are arguments.
// Thread: any (a plain value). Source: Kubernetes docs, "Liveness, Readiness and Startup Probes"; spec "Pod lifecycle",
// 9.1-9.4; vectors pod-lifecycle/probe_traces.
#pragma once

#include "base/time.h"
#include "policy/containers/probe_result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::containers {

struct ProbeThresholds {
  std::int64_t initial_delay_seconds = 0;
  std::int64_t success = 1;
  std::int64_t failure = 3;
};

/// What a probe sees of its container.
struct ProbedContainer {
  std::string id;  // empty: it has not been made yet
  bool running = false;
  bool ended = false;
  Duration age{};               // since it started; counts while it runs
  bool started = false;         // see is_started()
  bool never_restarts = false;  // the pod's restartPolicy is Never
  bool pod_deleted = false;     // its deletion was asked for
  bool pod_finished = false;    // Succeeded or Failed
};

/// kError: it could not be told.
enum class ProbeOutcome { kSuccess, kWarning, kFailure, kError };

class ProbeRun {
 public:
  /// kEnd: never again.
  enum class Turn { kWait, kProbe, kEnd };

  ProbeRun(ProbeKind kind, ProbeThresholds thresholds) : kind_(kind), thresholds_(thresholds) {}

  /// What an earlier agent's runs came to for this container. Without effect once a run of this one has counted.
  void resume(std::string container_id, ProbeResult result);
  /// Whether the container is to be probed now.
  Turn begin(const ProbedContainer& container);
  /// What the probe that begin() asked for came to. True: the result is another one than before.
  bool finish(ProbeOutcome outcome);

  ProbeKind kind() const { return kind_; }

  /// nullopt: this container has none yet.
  std::optional<ProbeResult> result_of(std::string_view container_id) const;

 private:
  bool set(ProbeResult result);

  ProbeKind kind_;
  ProbeThresholds thresholds_;
  std::string container_id_;
  std::optional<ProbeResult> result_;
  ProbeResult last_ = ProbeResult::kUnknown;
  std::int64_t same_in_row_ = 0;
  bool on_hold_ = false;  // until there is another container
};

/// A probe that could not be carried out is tried so often.
inline constexpr int kProbeTries = 3;

/// The event of an outcome; empty: it is not worth one.
struct ProbeEvent {
  std::string_view reason;  // Unhealthy, ProbeWarning
  std::string message;
};

std::optional<ProbeEvent> probe_event(ProbeKind kind, ProbeOutcome outcome, std::string_view output);

/// What the probes of a container say of it. A result that is not there while there is a probe is not a success.
struct ProbeVerdicts {
  bool has_startup_probe = false;
  std::optional<ProbeResult> startup;
  bool has_readiness_probe = false;
  std::optional<ProbeResult> readiness;
};

bool is_started(bool running, const ProbeVerdicts& verdicts);
bool is_ready(bool running, const ProbeVerdicts& verdicts);

}  // namespace spillway::containers
