// A real cluster as it can be simulated: the List that `kubectl get nodes,pods,leases,pdb,priorityclasses,daemonsets,
// replicasets,deployments -A -o json` prints. What cannot be simulated is named, never silently dropped. Thread: any
// (pure).
#pragma once

#include "api/json/json.h"
#include "base/bytes.h"
#include "base/error.h"
#include "sim/scenario/inventory.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::sim {

struct ImportOptions {
  enum class Load { kRequests, kLimits };
  /// The assumed use of a pod that was not measured: its requests or its limits; where it has neither, 10Mi.
  Load load = Load::kRequests;
  std::vector<std::pair<std::string, Bytes>>
      profile;                            // glob of namespace/name; the first that matches, before all else
  std::map<std::string, Bytes> measured;  // by namespace/name, of metrics.k8s.io
};

/// kInvalid: not a List of objects, or it has no node that is Ready.
Result<Inventory> import_cluster(const api::Json& list, const ImportOptions& options);

/// The lists of an API server that a cluster is made of, by path; the last is kMeasuredList, and can be done without.
std::span<const std::string_view> cluster_lists();
inline constexpr std::string_view kMeasuredList = "/apis/metrics.k8s.io/v1beta1/pods";

/// The lists of a cluster that have been read so far.
struct ClusterLists {
  api::Json::Array items;
  ImportOptions options;
};

/// Takes one answer to one of cluster_lists(), or one page of it. kInvalid: it is no list.
Outcome add_list(ClusterLists& to, api::Json list);

/// Imports the lists that were read.
Result<Inventory> import_cluster(ClusterLists lists);

/// Memory by namespace/name, from a PodMetricsList of metrics.k8s.io.
std::map<std::string, Bytes> measured_memory(const api::Json& pod_metrics);

}  // namespace spillway::sim
