// The objects of a cluster that need a look, each with one remark that says why: what `spillway explain` prints without
// arguments. Nodes come first, then pods, workloads whose pods are refused, claims and Services; pods of one owner with
// the same trouble are one entry.
// Thread: any (pure). Bounds: kConcernsMax entries, the others are counted.
#pragma once

#include "api/object/endpoints.h"
#include "api/object/event.h"
#include "api/object/job.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "api/object/service.h"
#include "api/object/workload.h"
#include "policy/outlook/claim_outlook.h"
#include "policy/outlook/outlook.h"
#include "policy/outlook/workload_outlook.h"
#include "policy/reason.h"
#include "policy/workloads/pod_state.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::outlook {

inline constexpr std::size_t kConcernsMax = 40;

/// A workload that makes pods, with the number that it wants now.
struct PodMaker {
  std::string_view kind;  // "ReplicaSet", "StatefulSet", "DaemonSet", "Job"
  api::ObjectMeta metadata;
  std::int64_t wanted = 0;
};

PodMaker maker_of(const api::ReplicaSet& set);
PodMaker maker_of(const api::StatefulSet& set);
PodMaker maker_of(const api::DaemonSet& set);
PodMaker maker_of(const api::Job& job);

struct OverviewScene {
  std::vector<std::shared_ptr<const api::Node>> nodes;  // by name
  std::vector<workloads::PodPtr> pods;                  // by namespace and name
  std::vector<ClaimPtr> claims;                         // by namespace and name
  std::optional<std::vector<ClassPtr>> classes;         // nullopt: not read
  std::vector<std::shared_ptr<const api::Service>> services;
  std::vector<std::shared_ptr<const api::EndpointSlice>> slices;
  std::vector<std::shared_ptr<const api::Event>> refusals;  // events FailedCreate
  std::vector<PodMaker> makers;                             // workloads that refusals may be about, by kind and name
  std::map<std::string, policy::Decision> standings;        // answers of the agents, by node
  std::string hold;                                         // reason of a hold of the whole cluster; empty: none
};

struct Concern {
  policy::Subject subject;
  Remark remark;
  std::string owner;      // "ReplicaSet web"; empty: none
  std::int64_t more = 0;  // number of further pods of this owner with the same remark
};

struct Overview {
  std::int64_t nodes = 0;
  std::int64_t nodes_ready = 0;
  std::int64_t pods = 0;
  std::int64_t pods_running = 0;
  std::vector<Concern> concerns;  // the most pressing first
  std::int64_t concerns_total = 0;
};

/// The reason why a node that reports is not ready. nullopt: it is ready, or it is silent, which the controllers
/// explain.
std::optional<Outlook> explain_node(const api::Node& node, WallTime now);

Overview overview_of(const OverviewScene& scene, WallTime now);

}  // namespace spillway::outlook
