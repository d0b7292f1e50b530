#include "apps/commands/live_inventory.h"

#include "apps/view/cluster_view.h"
#include "apps/view/remote.h"
#include "runtime/loop.h"
#include "sim/scenario/cluster_import.h"

#include <array>
#include <string>
#include <utility>

namespace spillway::apps {
namespace {

struct Listed {
  const char* path;
  const char* kind;
  const char* api_version;
};

constexpr std::array<Listed, 7> kListed = {
    {{"/api/v1/nodes", "Node", "v1"},
     {"/api/v1/pods", "Pod", "v1"},
     {"/apis/policy/v1/poddisruptionbudgets", "PodDisruptionBudget", "policy/v1"},
     {"/apis/scheduling.k8s.io/v1/priorityclasses", "PriorityClass", "scheduling.k8s.io/v1"},
     {"/apis/apps/v1/daemonsets", "DaemonSet", "apps/v1"},
     {"/apis/apps/v1/replicasets", "ReplicaSet", "apps/v1"},
     {"/apis/apps/v1/deployments", "Deployment", "apps/v1"}}};

}  // namespace

Result<sim::Inventory> read_live_inventory(const cli::ClusterArgs& api) {
  runtime::Loop loop;
  SPILLWAY_TRY(remote, connect_remote(loop, api));
  ClusterView view(loop, std::move(remote.transport));
  api::Json items = api::Json::array();
  for (const Listed& each : kListed) {
    auto list = view.get(each.path);
    if (!list && list.error().code == ErrorCode::kNotFound) continue;  // a server without that resource
    if (!list) return list.error();
    const api::Json* found = list->find("items");
    if (found == nullptr || !found->is_array()) continue;
    for (api::Json item : *found->if_array()) {
      item["kind"] = each.kind;
      item["apiVersion"] = each.api_version;
      items.if_array()->push_back(std::move(item));
    }
  }
  sim::ImportOptions options;
  if (const auto metrics = view.get("/apis/metrics.k8s.io/v1beta1/pods"))
    options.measured = sim::measured_memory(*metrics);
  return sim::import_cluster(api::Json::object({{"items", std::move(items)}}), options);
}

}  // namespace spillway::apps
