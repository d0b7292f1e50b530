// Evaluates a Job's podFailurePolicy and successPolicy. Thread: any (pure). Source: Kubernetes docs, "Jobs", "Pod
// failure policy", "Success policy"; KEP-3329, KEP-3998; vectors workloads/pod_failure_policy, workloads/job_status.
#pragma once

#include "api/object/job.h"
#include "api/object/pod.h"
#include "policy/workloads/job_indexes.h"

#include <cstddef>
#include <optional>
#include <string>

namespace spillway::workloads {

inline constexpr std::string_view kIgnore = "Ignore";
inline constexpr std::string_view kFailIndex = "FailIndex";
inline constexpr std::string_view kFailJob = "FailJob";
inline constexpr std::string_view kCount = "Count";

struct PodFailureMatch {
  bool counts = true;                    // towards the limits
  std::optional<std::string> action;     // action of the rule that matches; nullopt: none does
  std::optional<std::string> job_fails;  // the cause, if the whole Job fails
};

/// The first rule that fits decides; without a rule the failure counts.
PodFailureMatch match_pod_failure(const std::optional<api::PodFailurePolicy>& policy, const api::Pod& pod);

/// Position of the first rule that matches.
std::optional<std::size_t> fulfilled_success_rule(const std::optional<api::SuccessPolicy>& policy,
                                                  std::int32_t completions, const JobIndexes& succeeded);

}  // namespace spillway::workloads
