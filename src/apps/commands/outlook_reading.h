// Reads a Job, a CronJob, a HorizontalPodAutoscaler, a Service, a ReplicaSet, a StatefulSet, a DaemonSet or a claim
// with its dependants, with the rights of the user: forbidden objects are named in a line and left out. Thread: main,
// as ClusterView. Bounds: one list of each kind that belongs to it, of its namespace; kNamesCompared names where there
// is none of that name.
#pragma once

#include "apps/view/cluster_view.h"
#include "base/error.h"
#include "base/time.h"
#include "policy/outlook/claim_outlook.h"
#include "policy/outlook/outlook.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apps {

inline constexpr std::size_t kNamesCompared = 1000;

/// The side from which a Service is explained; other resources do not use it.
struct ServiceView {
  std::string node;         // where connections begin; empty: on the first node by name
  std::string not_carried;  // why no Service proxy runs; empty: one does, or it is not known
};

/// The outlook of that object (policy/outlook). kNotFound: the object does not exist; the error names a similar name,
/// if there is one.
Result<outlook::Outlook> read_outlook(ClusterView& cluster, std::string_view resource, const std::string& name_space,
                                      const std::string& name, const ServiceView& view, Now now);

/// nullopt: the user may not read them. The state of a claim can be explained without them.
std::optional<std::vector<outlook::ClassPtr>> read_storage_classes(ClusterView& cluster);

}  // namespace spillway::apps
