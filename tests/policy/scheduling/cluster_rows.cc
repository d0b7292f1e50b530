#include "policy/scheduling/cluster_rows.h"

#include "api/codec/codec.h"
#include "api/object/service.h"
#include "api/object/workload.h"

namespace spillway::scheduling {

using api::Json;

const Json::Array& list_at(const Json& row, std::string_view member) {
  static const Json::Array kNone;
  const Json* list = row.at({"in", member});
  return list == nullptr || list->if_array() == nullptr ? kNone : *list->if_array();
}

std::int64_t int_at(const Json& json, std::string_view member, std::int64_t otherwise) {
  const Json* value = json.find(member);
  return value == nullptr ? otherwise : value->if_int64().value_or(otherwise);
}

namespace {

ScoringStrategy strategy_of(const Json& json) {
  ScoringStrategy strategy;
  const std::string_view type = json.string_at({"Type"});
  if (type == "MostAllocated") strategy.type = ScoringStrategy::Type::kMostAllocated;
  if (type == "RequestedToCapacityRatio") strategy.type = ScoringStrategy::Type::kRequestedToCapacityRatio;
  strategy.resources.clear();
  for (const Json& each : *json.find("Resources")->if_array()) {
    strategy.resources.push_back({std::string(each.string_at({"Name"})), int_at(each, "Weight", 1)});
  }
  if (const Json* shape = json.at({"RequestedToCapacityRatio", "Shape"})) {
    for (const Json& each : *shape->if_array()) {
      strategy.shape.push_back({int_at(each, "Utilization", 0), int_at(each, "Score", 0)});
    }
  }
  return strategy;
}

Profile profile_of(const Json& row) {
  Profile profile;
  const Json* args = row.at({"in", "args"});
  if (args == nullptr) return profile;
  profile.hard_pod_affinity_weight = int_at(*args, "HardPodAffinityWeight", 1);
  if (const Json* ignore = args->find("IgnorePreferredTermsOfExistingPods")) {
    profile.ignore_preferred_terms_of_existing_pods = ignore->if_bool().value_or(false);
  }
  if (const Json* strategy = args->find("ScoringStrategy")) profile.fit = strategy_of(*strategy);
  if (const Json* constraints = args->find("DefaultConstraints")) {
    profile.default_constraints.emplace();
    for (const Json& each : *constraints->if_array()) {
      SpreadConstraint constraint;
      constraint.max_skew = int_at(each, "maxSkew", 0);
      constraint.min_domains = int_at(each, "minDomains", 1);
      constraint.topology_key = each.string_at({"topologyKey"});
      constraint.required = each.string_at({"whenUnsatisfiable"}) == "DoNotSchedule";
      profile.default_constraints->push_back(std::move(constraint));
    }
  }
  return profile;
}

}  // namespace

Result<Cluster> read_cluster(const Json& row) {
  Cluster cluster;
  cluster.profile = profile_of(row);
  SPILLWAY_TRY(newcomer, api::decode<api::Pod>(*row.at({"in", "pod"})));
  cluster.pod = std::move(newcomer);
  for (const Json& each : list_at(row, "nodes")) {
    SPILLWAY_TRY(node, api::decode<api::Node>(each));
    cluster.nodes[node.metadata.name].set_node(std::make_shared<const api::Node>(node));
  }
  for (const Json& each : list_at(row, "pods")) {
    SPILLWAY_TRY(pod, api::decode<api::Pod>(each));
    cluster.nodes.at(pod.spec.node_name).add(pod);
    cluster.around.add(pod.spec.node_name, pod);
    cluster.pods[pod.spec.node_name].push_back(std::make_shared<const api::Pod>(pod));
  }
  for (const Json& each : list_at(row, "namespaces")) {
    SPILLWAY_TRY(ns, api::decode<api::Namespace>(each));
    cluster.around.set_namespace(ns.metadata.name, ns.metadata.labels);
  }
  for (const Json& each : list_at(row, "services")) {
    SPILLWAY_TRY(service, api::decode<api::Service>(each));
    cluster.around.set_service(service.metadata.ns, service.metadata.name, service.selector);
  }
  for (const Json& each : list_at(row, "replicasets")) {
    SPILLWAY_TRY(set, api::decode<api::ReplicaSet>(each));
    cluster.around.set_owner(api::kind_of<api::ReplicaSet>(), set.metadata.ns, set.metadata.name, set.selector);
  }
  for (const Json& each : list_at(row, "nominated")) {
    SPILLWAY_TRY(pod, api::decode<api::Pod>(each));
    cluster.around.nominate(pod.status.nominated_node_name, std::make_shared<const api::Pod>(pod));
  }
  return cluster;
}

}  // namespace spillway::scheduling
