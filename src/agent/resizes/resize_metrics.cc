#include "agent/resizes/resize_metrics.h"

#include <array>
#include <vector>

namespace spillway::agent {
namespace {

std::string_view label_of(ResizeTrigger trigger) {
  switch (trigger) {
    case ResizeTrigger::kPodUpdated:
      return "pod_updated";
    case ResizeTrigger::kPodResized:
      return "pod_resized";
    case ResizeTrigger::kPodsRemoved:
      return "pods_removed";
    case ResizeTrigger::kPodTerminated:
      return "pod_terminated";
    case ResizeTrigger::kPeriodic:
      return "periodic_retry";
  }
  return {};
}

/// The name of the change from one amount to another; empty: none.
std::string_view operation_of(const api::ResourceList& before, const api::ResourceList& wanted,
                              std::string_view resource) {
  const auto old = before.find(resource);
  const auto now = wanted.find(resource);
  if (old == before.end() && now == wanted.end()) return {};
  if (old == before.end()) return "add";
  if (now == wanted.end()) return "remove";
  if (old->second == now->second) return {};
  return old->second < now->second ? "increase" : "decrease";
}

}  // namespace

void ResizeMetrics::count_request(const containers::PodResources& before,
                                  const containers::PodResources& wanted) const {
  if (registry_ == nullptr) return;
  for (const auto& [name, now] : wanted.containers) {
    const auto old = before.containers.find(name);
    if (old == before.containers.end()) continue;
    for (const std::string_view resource : {"cpu", "memory"}) {
      const std::array parts = {std::pair(std::string_view("requests"), &api::ResourceRequirements::requests),
                                std::pair(std::string_view("limits"), &api::ResourceRequirements::limits)};
      for (const auto& [requirement, part] : parts) {
        const std::string_view operation = operation_of(old->second.*part, now.*part, resource);
        if (operation.empty()) continue;
        registry_
            ->counter("kubelet_container_requested_resizes_total", "Number of requested resizes, counted per container",
                      {{"resource", resource}, {"requirement", requirement}, {"operation", operation}})
            .add();
      }
    }
  }
}

void ResizeMetrics::count_infeasible(std::string_view detail) const {
  if (registry_ == nullptr) return;
  registry_
      ->counter("kubelet_pod_infeasible_resizes_total", "Number of resizes that cannot be made while the pod lives",
                {{"reason_detail", detail}})
      .add();
}

void ResizeMetrics::count_accepted(ResizeTrigger trigger) const {
  if (registry_ == nullptr) return;
  registry_
      ->counter("kubelet_pod_deferred_accepted_resizes_total", "Number of resizes that were accepted after a deferral",
                {{"retry_trigger", label_of(trigger)}})
      .add();
}

void ResizeMetrics::record_end(Duration took, bool success) const {
  if (registry_ == nullptr) return;
  const std::vector<double> buckets{10,    50,    100,   500,   1000,   2000,   5000,
                                    10000, 20000, 30000, 60000, 120000, 300000, 600000};
  registry_
      ->histogram("kubelet_pod_resize_duration_milliseconds",
                  "Duration of a resize in milliseconds, from its allocation until it is in force", buckets,
                  {{"success", success ? "true" : "false"}})
      .observe(in_seconds(took) * 1000);
}

void ResizeMetrics::set_present(const ResizesNow& now) const {
  if (registry_ == nullptr) return;
  const auto pending = [this](std::string_view reason, std::int64_t count) {
    registry_->gauge("kubelet_pod_pending_resizes", "Number of pending resizes", {{"reason", reason}})
        .set(static_cast<double>(count));
  };
  pending("deferred", now.deferred);
  pending("infeasible", now.infeasible);
  registry_->gauge("kubelet_pod_in_progress_resizes", "Number of resizes that are allocated and not yet in force")
      .set(static_cast<double>(now.in_progress));
}

}  // namespace spillway::agent
