#include "policy/admission/resize.h"

#include "api/object/pod_requests.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::admission {
namespace {

const api::Quantity& requested(const api::Container& container, std::string_view resource) {
  static const api::Quantity kNothing;
  const auto found = container.resources.requests.find(resource);
  return found == container.resources.requests.end() ? kNothing : found->second;
}

/// Calls `test` with each container of `pod` and the same one as it was allocated. True: one test was.
bool any_resized(const api::Pod& pod, const api::Pod& allocated,
                 const std::function<bool(const api::Container& now, const api::Container& before)>& test) {
  for (const auto list : {&api::PodSpec::init_containers, &api::PodSpec::containers}) {
    const std::vector<api::Container>& old = allocated.spec.*list;
    for (const api::Container& each : pod.spec.*list) {
      const auto before = std::ranges::find(old, each.name, &api::Container::name);
      if (before != old.end() && test(each, *before)) return true;
    }
  }
  return false;
}

bool may_swap(const api::Pod& pod, const api::Container& container) {
  if (api::is_critical(pod) || api::qos_of(pod) != api::QosClass::kBurstable) return false;
  const auto limit = container.resources.limits.find("memory");
  return requested(container, "memory") !=
         (limit == container.resources.limits.end() ? api::Quantity() : limit->second);
}

bool changes_request(const api::Pod& pod, const api::Pod& allocated, std::string_view resource) {
  return any_resized(pod, allocated, [&](const api::Container& now, const api::Container& before) {
    return requested(now, resource) != requested(before, resource);
  });
}

bool resizes_swapping_container(const api::Pod& pod, const api::Pod& allocated) {
  return any_resized(pod, allocated, [&](const api::Container& now, const api::Container& before) {
    return requested(now, "memory") != requested(before, "memory") &&
           (may_swap(pod, now) || may_swap(allocated, before));
  });
}

Answer infeasible(std::string message, std::string_view detail) {
  return refuse(std::string(kInfeasible), std::move(message),
                {policy::ReasonCode::kFeatureMissing, {{"features", std::string(detail)}}});
}

/// A copy of the pod that counts by its spec alone: the resources that it has now are freed by the resize.
api::Pod without_present(const api::Pod& pod) {
  api::Pod made = pod;
  made.status.resources.reset();
  made.status.allocated_resources.clear();
  made.status.container_statuses.clear();
  made.status.init_container_statuses.clear();
  return made;
}

}  // namespace

std::string infeasible_detail(const Answer& answer) {
  const policy::Fact* detail =
      answer.reasons.empty() ? nullptr : policy::find_fact(answer.reasons.front().facts, "features");
  const std::string* text = detail == nullptr ? nullptr : std::get_if<std::string>(&detail->value);
  return text == nullptr ? "unknown" : *text;
}

Answer admit_resize(const NodeSituation& node, const ResizeSettings& settings, const api::Pod& pod,
                    const api::Pod& allocated, std::span<const api::Pod* const> active) {
  if (settings.swaps && resizes_swapping_container(pod, allocated)) {
    return infeasible("In-place resize of containers with swap is not supported.", "swap_limitation");
  }
  if (api::qos_of(allocated) == api::QosClass::kGuaranteed) {
    if (settings.static_cpus && changes_request(pod, allocated, "cpu")) {
      return infeasible("Resize is infeasible for Guaranteed Pods alongside CPU Manager policy \"static\"",
                        "guaranteed_pod_cpu_manager_static_policy");
    }
    if (settings.static_memory && changes_request(pod, allocated, "memory")) {
      return infeasible("Resize is infeasible for Guaranteed Pods alongside Memory Manager policy \"Static\"",
                        "guaranteed_pod_memory_manager_static_policy");
    }
  }
  NodeSituation present = node;
  present.allocate = {};  // devices and other assigned resources cannot be resized
  present.preempts = false;
  Answer answer = admit_pod(present, without_present(pod), active);
  if (answer.refusal) answer.refusal->reason = kDeferred;
  return answer;
}

}  // namespace spillway::admission
