// The pods that are behind a Service, those that are not and why, and what a client of the Service meets.
// policy/endpoints decides; this describes its decision, from the objects of the API server. Thread: any (pure).
// Bounds: kRowsMax rows in a part. Source: Kubernetes docs, "Service", "EndpointSlices"; spec "Scheduler and
// workloads", 16.
#pragma once

#include "api/object/service.h"
#include "policy/endpoints/slice_plan.h"
#include "policy/outlook/outlook.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::outlook {

struct ServiceScene {
  const api::Service& service;
  std::string external_name;  // spec.externalName
  // pods of the Service's namespace, by name; nullopt: not read
  std::optional<std::vector<endpoints::PodPtr>> pods;
  std::optional<std::vector<endpoints::SlicePtr>> slices;  // slices of the Service, by name; nullopt: not read
  // names of the nodes; nullopt: not read, every node is taken to exist
  std::optional<std::set<std::string>> nodes;
  std::string not_carried = {};  // why no Service proxy runs; empty: one does, or not known
};

Outlook explain_service(const ServiceScene& scene, WallTime now);

}  // namespace spillway::outlook
