// Pods that are not to be placed yet: the plugin SchedulingGates. Thread: any (pure). Source: Kubernetes docs, "Pod
// Scheduling Readiness"; spec "Scheduler and workloads", 7; vectors scheduling/queue_sort.
#pragma once

#include "api/object/pod.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

namespace spillway::scheduling {

/// "waiting for scheduling gates: [example.com/quota]"; empty: the pod has none.
inline std::string gates_text(const api::Pod& pod) {
  const api::Json::Array* gates = pod.spec.scheduling_gates.if_array();
  if (gates == nullptr || gates->empty()) return {};
  std::vector<std::string_view> names;
  for (const api::Json& gate : *gates) names.push_back(gate.string_at({"name"}));
  return fmt::format("waiting for scheduling gates: [{}]", fmt::join(names, " "));
}

}  // namespace spillway::scheduling
