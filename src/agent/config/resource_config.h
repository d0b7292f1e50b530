// Members of KubeletConfiguration that limits of containers follow from.
// Thread: any (pure). Source: Kubernetes docs, "Kubelet Configuration (v1beta1)", "Swap memory management"; KEP-2570.
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <optional>

namespace spillway::agent {

/// kInvalid, in upstream's words: a member that cannot be, alone or with the gates that are on. `effective`: a checked
/// configuration.
Outcome check_resources(const api::Json& effective);

/// cpuCFSQuotaPeriod in microseconds. 100 ms where the gate CustomCPUCFSQuotaPeriod is off.
std::int64_t cpu_period_micros(const api::Json& effective);
/// crashLoopBackOff.maxContainerRestartPeriod: the longest wait of a container that ends again and again. 5m by
/// default; kInvalid, in upstream's words: out of range, or without the gate KubeletCrashLoopBackOffMax.
Result<Duration> restart_delay_max(const api::Json& effective);
/// qosReserved.memory in percent; nullopt: nothing is reserved, or the gate QOSReserved is off.
std::optional<std::int64_t> reserved_memory_percent(const api::Json& effective);
/// memoryThrottlingFactor, 0.9 by default.
double memory_throttling_factor(const api::Json& effective);

}  // namespace spillway::agent
