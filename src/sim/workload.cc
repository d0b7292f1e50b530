#include "sim/workload.h"

#include <string_view>
#include <utility>

namespace spillway::sim {
namespace {

api::Json workload(std::string_view kind, const std::string& name, api::Json pod_spec) {
  const api::Json labels = api::Json::object({{"app", name}});
  return api::Json::object(
      {{"apiVersion", "apps/v1"},
       {"kind", kind},
       {"metadata", api::Json::object({{"name", name}})},
       {"spec",
        api::Json::object({{"selector", api::Json::object({{"matchLabels", labels}})},
                           {"template", api::Json::object({{"metadata", api::Json::object({{"labels", labels}})},
                                                           {"spec", std::move(pod_spec)}})}})}});
}

}  // namespace

api::Json replica_set(const std::string& name, std::int64_t replicas, api::Json pod_spec) {
  api::Json set = workload("ReplicaSet", name, std::move(pod_spec));
  set["spec"]["replicas"] = replicas;
  return set;
}

api::Json deployment(const std::string& name, std::int64_t replicas, api::Json pod_spec,
                     const api::Json& max_unavailable, const api::Json& max_surge) {
  api::Json made = workload("Deployment", name, std::move(pod_spec));
  made["spec"]["replicas"] = replicas;
  if (!max_unavailable.is_null()) made.make({"spec", "strategy", "rollingUpdate", "maxUnavailable"}) = max_unavailable;
  if (!max_surge.is_null()) made.make({"spec", "strategy", "rollingUpdate", "maxSurge"}) = max_surge;
  return made;
}

api::Json daemon_set(const std::string& name, api::Json pod_spec) {
  return workload("DaemonSet", name, std::move(pod_spec));
}

}  // namespace spillway::sim
