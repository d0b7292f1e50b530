#include "sim/scenario/rest.h"

#include "sim/properties/object_facts.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <set>

namespace spillway::sim {
namespace {

void check_nodes(const Cluster& cluster, std::vector<Unrest>& unrest) {
  for (const auto& [name, node] : cluster.world().nodes()) {
    if (!is_ready(node)) unrest.push_back({"Node", fmt::format("node {} is not ready", name)});
    for (const api::Taint& taint : node.spec.taints)
      unrest.push_back({"Node", fmt::format("node {} has taint {}", name, taint.key)});
  }
  if (cluster.world().nodes().size() != cluster.node_count()) unrest.push_back({"Node", "a node is missing"});
}

void check_replica_sets(const Cluster& cluster, const std::map<std::string, std::int64_t>& running,
                        std::vector<Unrest>& unrest) {
  for (const auto& [key, set] : cluster.world().replica_sets()) {
    const auto found = running.find(set.metadata.uid);
    const std::int64_t count = found == running.end() ? 0 : found->second;
    if (count != set.replicas)
      unrest.push_back({"ReplicaSet", fmt::format("{} of {} replicas of {} run", count, set.replicas, key)});
  }
}

/// Checks that all pods of a Deployment are there and have its template.
void check_deployments(const Cluster& cluster, std::vector<Unrest>& unrest) {
  for (const auto& [key, deployment] : cluster.world().deployments()) {
    const api::DeploymentStatus& status = deployment.status;
    if (status.observed_generation == deployment.metadata.generation && status.replicas == deployment.replicas &&
        status.available_replicas == deployment.replicas && status.updated_replicas == deployment.replicas)
      continue;
    unrest.push_back(
        {"Deployment",
         fmt::format("{} of {} pods of deployment {} are available, {} are there and {} of its template",
                     status.available_replicas, deployment.replicas, key, status.replicas, status.updated_replicas)});
  }
}

}  // namespace

void heal_everything(Cluster& cluster) {
  cluster.end_faults();
  cluster.run_for(seconds(10));  // crashed processes are back
  cluster.network().unmute();
  for (std::size_t i = 0; i < cluster.server_count(); ++i) {
    cluster.restart_server(i);
    cluster.reach_server_again(i);
  }
  for (std::size_t i = 0; cluster.etcd() != nullptr && i < cluster.etcd()->replicas().count(); ++i) {
    cluster.etcd()->replicas().start(i);
    cluster.etcd()->replicas().rejoin(i);
  }
  cluster.restart_controllers();
  cluster.restart_scheduler();
  for (std::size_t i = 0; i < cluster.node_count(); ++i) {
    cluster.restart_node(i);
    cluster.heal_node(i);
    cluster.restore_link_of(i);
    cluster.machine(i)->let_all_end();
    cluster.machine(i)->slow_disk({});
  }
}

void uncordon_nodes(Cluster& cluster) {
  std::vector<std::string> cordoned;
  for (const auto& [name, node] : cluster.world().nodes())
    if (node.spec.unschedulable) cordoned.push_back(name);
  for (const std::string& name : cordoned) {
    cluster.patch("/api/v1/nodes/" + name,
                  api::Json::object({{"spec", api::Json::object({{"unschedulable", false}})}}));
  }
}

void resume_rollouts(Cluster& cluster) {
  std::vector<std::string> paused;
  for (const auto& [key, deployment] : cluster.world().deployments()) {
    if (!deployment.paused) continue;
    paused.push_back(
        fmt::format("/apis/apps/v1/namespaces/{}/deployments/{}", deployment.metadata.ns, deployment.metadata.name));
  }
  for (const std::string& path : paused)
    cluster.patch(path, api::Json::object({{"spec", api::Json::object({{"paused", false}})}}));
}

std::vector<Unrest> unrest_of(const Cluster& cluster) {
  std::vector<Unrest> unrest;
  check_nodes(cluster, unrest);
  for (const std::string& ns : cluster.world().tenants().ending())
    unrest.push_back({"Namespace", fmt::format("namespace {} is still being deleted", ns)});
  std::map<std::string, std::int64_t> running;  // by uid of the ReplicaSet
  std::set<std::string> should_run;
  for (const auto& [key, pod] : cluster.world().pods()) {
    if (pod.metadata.deletion_timestamp)
      unrest.push_back({"Pod", fmt::format("pod {} is still being deleted", key.text())});
    if (pod.status.phase != "Running") continue;
    should_run.insert(pod.metadata.uid);
    const api::OwnerReference* const owner = api::controller_of(pod.metadata);
    if (owner != nullptr && !pod.metadata.deletion_timestamp) ++running[owner->uid];
  }
  check_replica_sets(cluster, running, unrest);
  check_deployments(cluster, unrest);
  for (std::size_t i = 0; i < cluster.node_count(); ++i) {
    for (const auto& [uid, pod] : cluster.running_on(i)) {
      if (should_run.erase(uid) == 0)
        unrest.push_back({"Pod", fmt::format("{} runs on {} but should not", pod.text(), cluster.node_name(i))});
    }
  }
  if (!should_run.empty())
    unrest.push_back({"Pod", fmt::format("{} pods are Running without a process", should_run.size())});
  return unrest;
}

}  // namespace spillway::sim
