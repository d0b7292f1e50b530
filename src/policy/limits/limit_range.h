// A LimitRange against a new pod or a claim (the plug-in LimitRanger): what containers get that state nothing, and what
// is above or below what the namespace allows. Pure. Thread: any. Source: Kubernetes docs, "Limit Ranges"; spec
// "Scheduler and workloads", 19; vectors workloads/limitrange_defaults.
#pragma once

#include "api/object/limit_range.h"
#include "api/object/pod.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::limits {

/// Annotation of a pod that lists the defaulted amounts.
inline constexpr std::string_view kFilledAnnotation = "kubernetes.io/limit-ranger";

/// Gives containers and init containers the defaults of the range for what they do not state. The value of
/// kFilledAnnotation, empty if nothing was filled in: "LimitRanger plugin set: cpu request for container a".
std::string fill_in(const api::LimitRange& range, api::PodSpec& spec);

/// The search ends after that many problems, so that an answer stays small even for a large pod.
inline constexpr std::size_t kProblemsMax = 100;

/// Violations of the range by the pod, one sentence each: containers, then the pod as a whole, in the order of the
/// range's items; resources sorted, and for each item those below the minimum, then those above the maximum, then those
/// with too great a ratio.
std::vector<std::string> pod_problems(const api::LimitRange& range, const api::Pod& pod);

/// The problems of a claim for storage.
std::vector<std::string> claim_problems(const api::LimitRange& range, const api::ResourceList& requests);

}  // namespace spillway::limits
