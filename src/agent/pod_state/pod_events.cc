#include "agent/pod_state/pod_events.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::agent {
namespace {

/// Name of the pod's list that contains the container.
std::string_view list_name(const PodWorker& worker, const std::string& container) {
  const auto is_it = [&](const ContainerRun& run) { return run.spec->name == container; };
  if (std::ranges::any_of(worker.init_containers, is_it)) return "initContainers";
  return std::ranges::any_of(worker.ephemeral_containers, is_it) ? "ephemeralContainers" : "containers";
}

}  // namespace

void PodEvents::record(const PodWorker& worker, const std::string& container, client::EventType type,
                       std::string_view reason, std::string_view message, Now now) {
  api::ObjectReference about = client::reference_to(*worker.pod);
  if (!container.empty()) {
    about.field_path = fmt::format("spec.{}{{{}}}", list_name(worker, container), container);
  }
  about.resource_version.clear();  // repeats of one event must be recognised across versions
  recorder_.record(about, type, reason, message, now);
}

void PodEvents::record(const PodWorker& worker, const PodNotice& notice, Now now) {
  const bool warns = notice.weight == PodNotice::Weight::kWarning;
  record(worker, notice.container, warns ? client::EventType::kWarning : client::EventType::kNormal, notice.reason,
         notice.message, now);
}

}  // namespace spillway::agent
