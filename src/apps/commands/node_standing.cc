#include "apps/commands/node_standing.h"

#include "agent/companion/kubelet_settings.h"
#include "api/codec/codec.h"
#include "client/api_client.h"
#include "policy/decision_json.h"
#include "policy/eviction/decide.h"
#include "policy/eviction/threshold_parse.h"

#include <utility>
#include <vector>

namespace spillway::apps {
namespace {

std::string proxy_of(const std::string& node) {
  return "/api/v1/nodes/" + api::percent_encode(node) + "/proxy";
}

Result<policy::Decision> kubelet_standing(ClusterView& cluster, const std::string& node, Now now) {
  SPILLWAY_TRY(configz, cluster.get(proxy_of(node) + "/configz"));
  SPILLWAY_TRY(settings, agent::parse_configz(configz));
  SPILLWAY_TRY(thresholds, eviction::parse_thresholds(settings.thresholds));
  SPILLWAY_TRY(document, cluster.get(proxy_of(node) + "/stats/summary"));
  SPILLWAY_TRY(summary, api::decode<api::Summary>(document));
  SPILLWAY_TRY(list, cluster.get("/api/v1/pods?fieldSelector=spec.nodeName%3D" + api::percent_encode(node)));
  std::vector<api::Pod> pods;
  if (const api::Json* items = list.find("items"); items != nullptr && items->if_array() != nullptr) {
    for (const api::Json& each : *items->if_array()) {
      auto pod = api::decode<api::Pod>(each);
      if (pod && !api::is_terminal(*pod)) pods.push_back(*std::move(pod));
    }
  }
  std::vector<const api::Pod*> active;
  for (const api::Pod& each : pods) active.push_back(&each);
  const eviction::PassConfig config{.thresholds = std::move(thresholds), .node = node};
  eviction::PassState state;
  eviction::adopt_layout(config, {}, state);
  return eviction::current_decision(config, state, summary, active, eviction::Signal::kMemoryAvailable, now);
}

}  // namespace

Result<policy::Decision> node_standing(ClusterView& cluster, const std::string& node, Now now) {
  const auto answer = cluster.get(proxy_of(node) + "/debug/spillway/decisions");
  if (!answer && answer.error().code == ErrorCode::kNotFound) return kubelet_standing(cluster, node, now);
  if (!answer) return answer.error();
  const api::Json* decision = answer->find("now");
  if (decision == nullptr) return make_error(ErrorCode::kServiceUnavailable, "its agent has not measured anything yet");
  return policy::decision_from_json(*decision);
}

}  // namespace spillway::apps
