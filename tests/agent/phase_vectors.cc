// vectors/node-agent: pod_phase.
#include "api/codec/codec.h"
#include "policy/containers/pod_phase.h"
#include "support/vectors.h"

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

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
  const bool terminal = row.find("podIsTerminal")->if_bool().value();
  const std::string_view phase =
      containers::phase_of(pod, pod.status.container_statuses,
                           terminal ? containers::PodProgress::kTerminal : containers::PodProgress::kOngoing);
  return support::compare(*row.find("phase"), Json(phase));
}

const bool kPhase = support::add_vector_check("node-agent/pod_phase", pod_phase);

}  // namespace
}  // namespace spillway::agent
