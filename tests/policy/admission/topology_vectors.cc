// vectors/admission/topology_hints: merged hints, whole admissions with their allocations, and bad set-ups.
#include "api/codec/codec.h"
#include "policy/admission/topology.h"
#include "policy/admission/topology_admit.h"
#include "support/vectors.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::admission {
namespace {

using api::Json;
using support::Mismatch;

NumaMachine machine_of(const Json& in) {
  NumaMachine machine{.nodes_count = static_cast<int>(*in.find("numa_nodes")->if_int64()), .distances = std::nullopt};
  const Json* distances = in.find("distances");
  if (distances == nullptr || distances->if_object() == nullptr) return machine;
  machine.distances.emplace();
  for (const auto& [node, row] : *distances->if_object()) {
    auto& values = machine.distances->emplace_back();
    for (const Json& value : *row.if_array()) values.push_back(*value.if_uint64());
  }
  return machine;
}

Result<TopologySetup> setup_of(const Json& in) {
  TopologyOptions options{.policy = std::string(in.string_at({"policy"})), .scope = "container", .policy_options = {}};
  if (const Json* scope = in.find("scope")) options.scope = *scope->if_string();
  const Json* closest = in.find("prefer_closest");
  if (closest != nullptr && *closest->if_bool()) options.policy_options["prefer-closest-numa-nodes"] = "true";
  if (const Json* more = in.find("options")) {
    for (const auto& [name, value] : *more->if_object()) options.policy_options[name] = *value.if_string();
  }
  return parse_topology(options, machine_of(in));
}

std::optional<ResourceHints> hints_of(const Json* document) {
  if (document == nullptr || document->is_null()) return std::nullopt;
  ResourceHints hints;
  for (const auto& [resource, list] : *document->if_object()) {
    auto& of_resource = hints[resource];
    if (list.is_null()) continue;
    of_resource.emplace();
    for (const Json& each : *list.if_array()) {
      TopologyHint hint{std::nullopt, *each.find("preferred")->if_bool()};
      if (const auto* nodes = each.find("mask")->if_array()) {
        hint.nodes = 0;
        for (const Json& node : *nodes) *hint.nodes |= NumaSet{1} << *node.if_int64();
      }
      of_resource->push_back(hint);
    }
  }
  return hints;
}

Json json_of(const TopologyHint& hint) {
  Json mask;
  if (hint.nodes) {
    mask = Json::array();
    for (int node = 0; node < 64; ++node) {
      if ((*hint.nodes >> node & 1) != 0) mask.if_array()->emplace_back(node);
    }
  }
  return Json::object({{"mask", std::move(mask)}, {"preferred", hint.preferred}});
}

Result<Json> merge(const Json& in) {
  SPILLWAY_TRY(setup, setup_of(in));
  std::vector<std::optional<ResourceHints>> providers;
  for (const Json& provider : *in.find("providers")->if_array()) providers.push_back(hints_of(&provider));
  const TopologyHint merged = merge_hints(setup, providers);
  Json result = json_of(merged);
  result["admit"] = accepts(setup.policy, merged);
  return Json::object({{"result", std::move(result)}});
}

/// Returns the hints of the row, and records the containers for which it allocates.
class RowProvider final : public HintProvider {
 public:
  RowProvider(const Json& row, Json& calls) : row_(row), calls_(calls) {}

  std::optional<ResourceHints> container_hints(const api::Pod&, const api::Container& container) override {
    return hints_of(row_.at({"container_hints", container.name}));
  }

  std::optional<ResourceHints> pod_hints(const api::Pod&) override { return hints_of(row_.find("pod_hints")); }

  std::optional<AllocationFailure> allocate(const api::Pod&, const api::Container& container,
                                            const TopologyHint&) override {
    calls_.if_array()->emplace_back(std::string(row_.string_at({"name"})) + "/" + container.name);
    const Json* error = row_.at({"allocate_error", container.name});
    if (error == nullptr) return std::nullopt;
    return AllocationFailure{std::nullopt, *error->if_string()};
  }

 private:
  const Json& row_;
  Json& calls_;
};

Result<Json> admit(const Json& in) {
  SPILLWAY_TRY(setup, setup_of(in));
  SPILLWAY_TRY(pod, api::decode<api::Pod>(*in.find("pod")));
  Json calls = Json::array();
  std::vector<std::unique_ptr<RowProvider>> owned;
  std::vector<HintProvider*> providers;
  for (const Json& each : *in.find("providers")->if_array()) {
    owned.push_back(std::make_unique<RowProvider>(each, calls));
    providers.push_back(owned.back().get());
  }
  const TopologyAnswer answer = admit_topology(setup, pod, providers);
  Json affinity = Json::object();
  for (const auto* list : {&pod.spec.init_containers, &pod.spec.containers}) {
    for (const api::Container& container : *list) {
      const auto stored = answer.affinity.find(container.name);
      affinity[container.name] = json_of(stored == answer.affinity.end() ? TopologyHint{} : stored->second);
    }
  }
  Json result = Json::object({{"admit", !answer.refusal}});
  if (answer.refusal) {
    result["reason"] = answer.refusal->reason;
    result["message"] = answer.refusal->message;
  }
  return Json::object(
      {{"result", std::move(result)}, {"affinity", std::move(affinity)}, {"allocate_calls", std::move(calls)}});
}

Json new_manager(const Json& in) {
  const auto setup = setup_of(in);
  if (setup) return Json::object({{"ok", true}});
  return Json::object({{"ok", false}, {"error", setup.error().message}});
}

std::optional<Mismatch> check(const Json& row) {
  const Json& in = *row.find("in");
  const std::string_view op = row.string_at({"op"});
  const Result<Json> got = op == "merge" ? merge(in) : op == "admit" ? admit(in) : Result<Json>(new_manager(in));
  if (!got) return Mismatch{api::to_text(*row.find("want")), got.error().text()};
  return support::compare(*row.find("want"), *got);
}

const bool kTopologyHints = support::add_vector_check("admission/topology_hints", check);

}  // namespace
}  // namespace spillway::admission
