// vectors/admission/scheduler_filter: six filters over small clusters, and the message when nothing is feasible.
#include "api/codec/codec.h"
#include "policy/scheduling/filter.h"
#include "policy/scheduling/place.h"
#include "support/vectors.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace spillway::scheduling {
namespace {

using api::Json;
using support::Mismatch;

struct Room {
  std::vector<std::string> order;
  std::map<std::string, policy::NodeLoad> nodes;
};

Result<Room> read_nodes(const Json& list) {
  Room room;
  for (const Json& each : *list.if_array()) {
    SPILLWAY_TRY(node, api::decode<api::Node>(*each.find("node")));
    policy::NodeLoad load(std::make_shared<const api::Node>(node));
    if (const Json* pods = each.find("pods"); pods != nullptr && pods->if_array() != nullptr) {
      for (const Json& document : *pods->if_array()) {
        SPILLWAY_TRY(pod, api::decode<api::Pod>(document));
        load.add(pod);
      }
    }
    room.order.push_back(node.metadata.name);
    room.nodes.emplace(node.metadata.name, std::move(load));
  }
  return room;
}

Json prefilter_of(const PendingPod& pod) {
  Json result = Json::object();
  const Json skip = Json::object({{"code", "Skip"}});
  if (!pod.asks_for_nodes) result["NodeAffinity"] = skip;
  if (pod.only_nodes && pod.only_nodes->empty()) {  // no other plug-in runs after that
    result["NodeAffinity"] = Json::object(
        {{"code", "UnschedulableAndUnresolvable"}, {"reasons", Json::array({"pod affinity terms conflict"})}});
    return result;
  }
  if (!pod.asks_for_ports) result["NodePorts"] = skip;
  if (!pod.only_nodes) return result;
  Json::Array names(pod.only_nodes->begin(), pod.only_nodes->end());
  result["NodeAffinity"] = Json::object({{"code", "Success"}, {"node_names", Json(std::move(names))}});
  return result;
}

Json result_of(const PendingPod& pod, const std::string& name, const policy::NodeLoad& load) {
  if (pod.only_nodes && !pod.only_nodes->contains(name)) {
    return Json::object({{"node", name}, {"excluded_by_prefilter", true}});
  }
  const auto refused = refuse_pod(pod, load);
  if (!refused) return Json::object({{"node", name}, {"code", "Success"}});
  Json::Array reasons;
  for (const Misfit& misfit : refused->misfits) reasons.emplace_back(misfit.text);
  return Json::object({{"node", name},
                       {"code", refused->resolvable() ? "Unschedulable" : "UnschedulableAndUnresolvable"},
                       {"plugin", to_string(refused->filter)},
                       {"reasons", Json(std::move(reasons))}});
}

/// Sorts the reasons behind the fixed four, which may be in any order.
void sort_reasons(Json& results) {
  for (Json& result : *results.if_array()) {
    if (Json* reasons = result.find("reasons")) {
      std::ranges::sort(*reasons->if_array(), {}, [](const Json& text) { return *text.if_string(); });
    }
  }
}

std::optional<Mismatch> scheduler_filter(const Json& row) {
  const auto pod = api::decode<api::Pod>(*row.at({"in", "pod"}));
  const auto room = read_nodes(*row.at({"in", "nodes"}));
  if (!pod || !room) return Mismatch{"objects that decode", (pod ? room.error() : pod.error()).text()};
  const PendingPod pending = make_pending(*pod);
  const bool rejected = pending.only_nodes && pending.only_nodes->empty();
  Json::Array results;
  Json::Array feasible;
  for (const std::string& name : room->order) {
    if (rejected) break;
    results.push_back(result_of(pending, name, room->nodes.at(name)));
    if (results.back().string_at({"code"}) == "Success") feasible.emplace_back(name);
  }
  const Placement placement = place_pod(*pod, room->nodes);
  Json got = Json::object(
      {{"prefilter", prefilter_of(pending)}, {"results", Json(std::move(results))}, {"feasible", Json(feasible)}});
  if (!placement.node) got["fit_error"] = placement.message;
  Json want = *row.find("want");
  sort_reasons(*want.find("results"));
  sort_reasons(*got.find("results"));
  if (placement.node && std::ranges::find(feasible, Json(*placement.node)) == feasible.end()) {
    return Mismatch{"a feasible node", *placement.node};
  }
  return support::compare(want, got);
}

const bool kRegistered = support::add_vector_check("admission/scheduler_filter", scheduler_filter);

}  // namespace
}  // namespace spillway::scheduling
