// The runs of one probe of one container: when it is due, and the result that its outcomes add up to. The time and the
// container's state are arguments.
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

/// The state of a container on which its probes depend.
struct ProbedContainer {
  std::string id;  // empty: the container does not exist yet
  bool running = false;
  bool ended = false;
  Duration age{};               // time since the container started, if it runs
  bool started = false;         // see is_started()
  bool never_restarts = false;  // no policy or rule starts it again once it has ended
  bool pod_deleted = false;     // the pod's deletion was requested
  bool pod_finished = false;    // Succeeded or Failed
};

/// kError: the probe itself failed, and its outcome is unknown.
enum class ProbeOutcome { kSuccess, kWarning, kFailure, kError };

class ProbeRun {
 public:
  /// kEnd: never again.
  enum class Turn { kWait, kProbe, kEnd };

  ProbeRun(ProbeKind kind, ProbeThresholds thresholds) : kind_(kind), thresholds_(thresholds) {}

  /// Takes over the result that an earlier agent had reached for this container. Without effect once a run of this one
  /// has counted.
  void resume(std::string container_id, ProbeResult result);
  /// Decides if the container is probed now.
  Turn begin(const ProbedContainer& container);
  /// Counts the outcome of the probe that begin() started. True: the result has changed.
  bool finish(ProbeOutcome outcome);

  ProbeKind kind() const { return kind_; }

  /// nullopt: there is no result for this container yet.
  std::optional<ProbeResult> result_of(std::string_view container_id) const;

 private:
  bool set(ProbeResult result);

  ProbeKind kind_;
  ProbeThresholds thresholds_;
  std::string container_id_;
  std::optional<ProbeResult> result_;
  ProbeResult last_ = ProbeResult::kUnknown;
  std::int64_t same_in_row_ = 0;
  bool on_hold_ = false;  // no probes until the container is replaced
};

/// A probe that could not be carried out is tried so often.
inline constexpr int kProbeTries = 3;

/// The event of an outcome; empty: it is not worth one.
struct ProbeEvent {
  std::string_view reason;  // Unhealthy, ProbeWarning
  std::string message;
};

std::optional<ProbeEvent> probe_event(ProbeKind kind, ProbeOutcome outcome, std::string_view output);

/// The results of a container's probes. A probe that has no result yet does not count as a success.
struct ProbeVerdicts {
  bool has_startup_probe = false;
  std::optional<ProbeResult> startup;
  bool has_readiness_probe = false;
  std::optional<ProbeResult> readiness;
};

bool is_started(bool running, const ProbeVerdicts& verdicts);
bool is_ready(bool running, const ProbeVerdicts& verdicts);

}  // namespace spillway::containers
