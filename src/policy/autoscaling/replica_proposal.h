// The number of replicas that one metric proposes. A pod without a reading is never a cause to act: it counts against
// the direction of the others, and the number is unchanged if that reverses the direction. Amounts are thousandths of a
// unit. Thread: any (pure). Source: Kubernetes docs, "Horizontal Pod Autoscaling", algorithm details; spec "Scheduler
// and workloads", 20; vectors workloads/hpa_replicas.
#pragma once

#include "api/object/pod.h"
#include "base/error.h"
#include "base/time.h"
#include "policy/autoscaling/settings.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::autoscaling {

using PodPtr = std::shared_ptr<const api::Pod>;

struct Sample {
  std::int64_t milli = 0;
  WallTime time{};
  Duration window{};
};

using Samples = std::map<std::string, Sample, std::less<>>;  // by the name of the pod

struct TargetView {
  std::vector<PodPtr> pods;   // pods that the target's selector matches
  std::int32_t replicas = 0;  // number of replicas in the target's spec
  Tolerance tolerance{};
  StartPeriods start_periods{};
  WallTime now{};
};

struct Proposal {
  std::int32_t replicas = 0;
  std::int64_t measured_milli = 0;                         // per pod, or in all where the target is in all
  std::optional<std::int32_t> utilization = std::nullopt;  // in percent of the requests
};

/// Proposes by usage as a share of the requests of all containers, or of the containers of one name. `percent` > 0.
/// kInvalid: no pod, no reading of a pod that counts, or a request is missing.
Result<Proposal> propose_by_utilization(const TargetView& view, std::string_view resource, std::string_view container,
                                        Samples samples, std::int32_t percent);
/// `resource` empty: what is measured is no resource. `target_milli` > 0. kInvalid: no pod, no reading of one that
/// counts.
Result<Proposal> propose_by_average(const TargetView& view, std::string_view resource, Samples samples,
                                    std::int64_t target_milli);
/// Proposes by one reading for all pods together, whose target is `target_milli` > 0. kInvalid: no pod.
Result<Proposal> propose_by_value(const TargetView& view, std::int64_t usage_milli, std::int64_t target_milli);
/// The proposal for a share of a target: `present` pods handle `target_milli` > 0 of it.
Proposal propose_by_share(Tolerance tolerance, std::int32_t present, std::int64_t usage_milli,
                          std::int64_t target_milli);

}  // namespace spillway::autoscaling
