// Results of a container's probes.
// Thread: any (plain values). Source: Kubernetes docs, "Liveness, Readiness and Startup Probes"; spec "Pod lifecycle",
// 9.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace spillway::containers {

enum class ProbeKind { kLiveness, kReadiness, kStartup };

enum class ProbeResult { kUnknown, kSuccess, kFailure };

/// Results by container id. An absent container has no result yet.
using ProbeResults = std::map<std::string, ProbeResult, std::less<>>;

}  // namespace spillway::containers
