// Metrics of a node, computed at the scrape: /metrics/resource, /metrics/cadvisor and the kubelet's own figures of
// /metrics, under upstream's names. A figure that was not measured is left out, never zero. Thread: any (pure). Source:
// Kubernetes docs, "Node metrics data", "Kubernetes Metrics Reference"; spec "Node agent", 13.
#pragma once

#include "agent/contract/ports.h"
#include "agent/contract/stats_age.h"
#include "api/object/pod.h"
#include "api/object/summary.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::agent {

/// Metrics for metrics-server and `kubectl top`: processor time and working sets with the time of their measurement.
/// Null: there is no summary yet, which shows as resource_scrape_error.
std::string resource_metrics(const api::Summary* summary, std::span<const api::Pod> pods);

/// Containers, pods and the node by cgroup, under cAdvisor's names. Containers have the labels container, pod and
/// namespace, pods the last two with an empty container, the node none of them and id="/".
std::string cadvisor_metrics(const api::Summary* summary, std::span<const api::Pod> pods, const MachineInfo& machine);

struct KubeletFacts {
  std::string node_name;
  int cgroup_version = 2;
  bool registered = false;
  std::optional<double> registration_seconds = {};  // from the agent's start
  std::vector<StatsAge> ages = {};
};

/// A check of /healthz at the moment.
struct CheckFact {
  std::string name;
  bool well = true;
};

/// Metrics for /metrics/slis: the state of each check.
std::string health_metrics(std::span<const CheckFact> checks);

/// Pods and containers by state, the node's name, the cgroup version.
std::string kubelet_metrics(const KubeletFacts& facts, std::span<const api::Pod> pods);

}  // namespace spillway::agent
