// Admission of a resize: may a pod that runs have other requests and limits? Thread: any (pure). Source: Kubernetes
// docs, "Resize CPU and Memory Resources assigned to Containers"; KEP-1287.
#pragma once

#include "api/object/pod.h"
#include "policy/admission/answer.h"
#include "policy/admission/chain.h"

#include <span>
#include <string>
#include <string_view>

namespace spillway::admission {

/// Reasons of a refused resize. kInfeasible: it cannot be made while the pod lives; it is tried again only when it is
/// changed. kDeferred: it is tried again when the node has more room.
inline constexpr std::string_view kInfeasible = "Infeasible";
inline constexpr std::string_view kDeferred = "Deferred";

/// Settings of the node that exclude some resizes.
struct ResizeSettings {
  bool swaps = false;  // containers of Burstable pods may swap (swapBehavior LimitedSwap)
  bool static_cpus = false;
  bool static_memory = false;
};

/// `pod`: with the resources that it is to have. `allocated`: the same pod as it was admitted. `active`: every active
/// pod with its allocated resources. The reason of a refusal is kInfeasible or kDeferred. A resize preempts no pod:
/// where a critical one would have to, it is deferred.
Answer admit_resize(const NodeSituation& node, const ResizeSettings& settings, const api::Pod& pod,
                    const api::Pod& allocated, std::span<const api::Pod* const> active);

/// The cause of an answer with kInfeasible, as the label reason_detail of metrics: one of a few.
std::string infeasible_detail(const Answer& answer);

}  // namespace spillway::admission
