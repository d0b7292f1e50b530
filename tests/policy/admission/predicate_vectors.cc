// vectors/admission: fit, predicate_admit.
#include "api/codec/codec.h"
#include "policy/admission/chain.h"
#include "policy/admission/reading.h"
#include "policy/fit.h"
#include "support/vectors.h"

#include <algorithm>

namespace spillway::admission {
namespace {

using api::Json;
using support::add_vector_check;
using support::compare;
using support::Mismatch;

PredicateFeatures features_of(const Json& in) {
  PredicateFeatures features;
  features.pod.pod_level_resources = flag_at(in, {"features", "PodLevelResources"});
  features.pod.in_place_pod_vertical_scaling = flag_at(in, {"features", "InPlacePodVerticalScaling"});
  features.sidecar_containers = flag_at(in, {"features", "SidecarContainers"}, true);
  return features;
}

policy::NodeLoad load_with(const std::shared_ptr<const api::Node>& node, const std::vector<api::Pod>& pods,
                           const api::PodFeatures& features) {
  policy::NodeLoad load(node);
  for (const api::Pod& pod : pods) load.add_unscored(pod, features);
  return load;
}

std::shared_ptr<const api::Node> node_at(const Json& in) {
  return std::make_shared<const api::Node>(api::decode<api::Node>(*in.find("node")).value());
}

std::optional<Mismatch> check_fit(const Json& row) {
  const Json& in = *row.find("in");
  const PredicateFeatures features = features_of(in);
  const policy::NodeLoad load = load_with(node_at(in), pods_at(in), features.pod);
  Json::Array insufficient;
  for (const policy::Shortage& each : policy::find_shortages(policy::requested_by(pod_at(in), features.pod), load)) {
    insufficient.push_back(Json::object({{"resource", each.resource},
                                         {"reason", policy::shortage_text(each)},
                                         {"requested", each.requested},
                                         {"used", each.used},
                                         {"capacity", each.capacity}}));
  }
  return compare(*row.find("want"), Json::object({{"fits", insufficient.empty()},
                                                  {"insufficient", Json(std::move(insufficient))},
                                                  {"node_allocatable", amounts_json(load.allocatable, load.pods_max)},
                                                  {"node_used", amounts_json(load.requested, 0)}}));
}

/// The answer that upstream leaves to chance: here the one for the resource that comes first by name.
Json one_of(const Json& answers) {
  const auto& list = *answers.if_array();
  return *std::ranges::min_element(list, {}, [](const Json& each) { return each.string_at({"reason"}); });
}

std::optional<Mismatch> check_predicate_admit(const Json& row) {
  const Json& in = *row.find("in");
  const api::Pod pod = pod_at(in);
  std::vector<api::Pod> pods = pods_at(in);
  std::vector<const api::Pod*> active = pointers_to(pods);
  active.push_back(&pod);
  const SysctlAllowlist nothing;
  NodeSituation situation{.node = nullptr,
                          .operating_system = "linux",
                          .conditions = {},
                          .sysctls = nothing,
                          .app_armor_error = {},
                          .shutting_down = false,
                          .features = features_of(in),
                          .allocate = {},
                          .devices_in_use = {}};
  if (in.find("node_error") == nullptr) situation.node = node_at(in);
  const std::vector<std::string> holders = strings_at(in, "device_pods");
  std::map<std::string, std::int64_t, std::less<>> devices;
  if (std::ranges::find(holders, pod.metadata.uid) != holders.end()) {
    for (const auto& [resource, count] : *in.find("allocated_devices")->if_object()) {
      devices.emplace(resource, count.if_int64().value());
    }
  }
  situation.devices_in_use = [&](const api::Pod&) { return devices; };

  const Answer answer = admit_pod(situation, pod, active);
  Json killed = Json::array();
  Json events = Json::array();
  for (const Victim& victim : answer.victims) {
    killed.if_array()->emplace_back(victim.pod.name);
    events.if_array()->push_back(preempting_event("pod", victim.pod.name));
  }
  Json got = Json::object({{"result", result_of(answer)}, {"killed", killed}, {"events", events}});
  if (situation.node != nullptr) {
    const policy::NodeLoad load = load_with(situation.node, pods, situation.features.pod);
    got["filter_reasons"] =
        failures_json(find_failures(pod, {.load = load, .devices_in_use = devices, .features = situation.features}));
  }
  Json want = *row.find("want");
  if (const Json* any = want.find("result_any_of")) {
    const Json chosen = one_of(*any);
    want.erase({"result_any_of"});
    want["result"] = chosen;
  }
  return compare(want, got);
}

const bool kFit = add_vector_check("admission/fit", check_fit);
const bool kPredicateAdmit = add_vector_check("admission/predicate_admit", check_predicate_admit);

}  // namespace
}  // namespace spillway::admission
