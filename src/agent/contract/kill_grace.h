// Computes the grace of a pod and its containers.
// Thread: any (pure). Source: Kubernetes docs, "Pod Lifecycle", termination of Pods; spec "Node
// agent", 14.3, 14.4, 14.6; vectors node-agent/kill_grace.
#pragma once

#include <cstdint>
#include <optional>

namespace spillway::agent {

/// The longest grace period, whatever a pod requests: about 68 years, so that nanoseconds stay in range.
inline constexpr std::int64_t kGraceSecondsMax = 2'147'483'647;

/// No container is killed sooner after the signal to end, unless memory would not last as long.
inline constexpr std::int64_t kStopSecondsMin = 2;

struct GraceRequest {
  std::optional<std::int64_t> deletion_seconds;  // the API object's
  std::optional<std::int64_t> override_seconds;  // set by an eviction or shutdown
  std::optional<std::int64_t> spec_seconds;
};

struct EffectiveGrace {
  std::int64_t seconds = 0;
  bool shortened = false;  // the grace has changed: the kill under way is repeated with the new one
};

/// The grace in effect from now on. `previous_seconds`: the one before, 0 if there was none; the new one is never
/// longer, and at least one second.
EffectiveGrace effective_grace(std::int64_t previous_seconds, const GraceRequest& request);

/// The time for which the component that ordered a kill waits for it: one and a half times the grace, at least 10 s.
/// The kill itself continues.
std::int64_t kill_wait_seconds(const GraceRequest& request);

enum class StopReason { kOther, kStartupProbe, kLivenessProbe };

struct ContainerStop {
  StopReason reason = StopReason::kOther;
  std::optional<std::int64_t> startup_probe_seconds;  // the probe's own grace
  std::optional<std::int64_t> liveness_probe_seconds;
  std::optional<std::int64_t> pre_stop_seconds;  // duration of the preStop hook; nullopt: there is none
};

/// Seconds between the signal to end and the kill of one container: at least two.
std::int64_t container_stop_seconds(const GraceRequest& request, const ContainerStop& stop);

}  // namespace spillway::agent
