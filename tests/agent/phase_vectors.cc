// vectors/node-agent: pod_phase, pod_phase_136.
#include "api/codec/codec.h"
#include "policy/containers/pod_phase.h"
#include "support/vectors.h"

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

std::optional<Mismatch> compare_phase(const Json& row, const api::Pod& pod, bool initialized) {
  const bool terminal = row.find("podIsTerminal")->if_bool().value();
  const std::string_view phase =
      containers::phase_of(pod, pod.status.container_statuses,
                           terminal ? containers::PodProgress::kTerminal : containers::PodProgress::kOngoing,
                           initialized ? containers::Initialized::kYes : containers::Initialized::kNo);
  return support::compare(*row.find("phase"), Json(phase));
}

std::optional<Mismatch> pod_phase(const Json& row) {
  Json document = Json::object();
  document.make({"spec", "restartPolicy"}) = row.string_at({"restartPolicy"});
  Json containers = Json::array();
  for (const Json& name : *row.find("containers")->if_array()) {
    containers.if_array()->push_back(Json::object({{"name", name}}));
  }
  Json init_containers = Json::array();
  for (const Json& each : *row.find("initContainers")->if_array()) {
    Json container = Json::object({{"name", each.string_at({"name"})}});
    if (each.find("sidecar")->if_bool().value()) container["restartPolicy"] = "Always";
    init_containers.if_array()->push_back(std::move(container));
  }
  document.make({"spec", "containers"}) = containers;
  document.make({"spec", "initContainers"}) = init_containers;
  document.make({"status", "containerStatuses"}) = *row.find("containerStatuses");
  if (row.find("static")->if_bool().value()) {
    document.make({"metadata", "annotations", "kubernetes.io/config.source"}) = "file";
  }
  const api::Pod pod = api::decode<api::Pod>(document).value();
  // Before 1.33 a container that had started, as the status says, was enough.
  const bool initialized = std::ranges::any_of(pod.spec.containers, [&pod](const api::Container& each) {
    const auto found = std::ranges::find(pod.status.container_statuses, each.name, &api::ContainerStatus::name);
    return found != pod.status.container_statuses.end() && (found->state.running || found->state.terminated);
  });
  return compare_phase(row, pod, initialized);
}

/// Kubernetes 1.36: a whole spec, with restart policies and rules of containers.
std::optional<Mismatch> pod_phase_136(const Json& row) {
  Json document = Json::object();
  document["spec"] = *row.find("spec");
  document.make({"status", "containerStatuses"}) = *row.find("containerStatuses");
  if (row.find("static")->if_bool().value()) {
    document.make({"metadata", "annotations", "kubernetes.io/config.source"}) = "file";
  }
  const api::Pod pod = api::decode<api::Pod>(document).value();
  return compare_phase(row, pod, row.find("podHasInitialized")->if_bool().value());
}

const bool kPhase = support::add_vector_check("node-agent/pod_phase", pod_phase);
const bool kPhase136 = support::add_vector_check("node-agent/pod_phase_136", pod_phase_136);

}  // namespace
}  // namespace spillway::agent
