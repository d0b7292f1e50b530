// vectors/workloads: endpointslices, repack_subsets.
#include "api/codec/codec.h"
#include "api/object/endpoints.h"
#include "policy/endpoints/endpoints_plan.h"
#include "policy/endpoints/slice_plan.h"
#include "support/vectors.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

namespace spillway::endpoints {
namespace {

using api::Json;
using support::Mismatch;

template <typename T>
std::vector<std::shared_ptr<const T>> given(const Json& in, std::string_view member) {
  std::vector<std::shared_ptr<const T>> out;
  const Json* list = in.find(member);
  if (list == nullptr || list->if_array() == nullptr) return out;
  for (const Json& each : *list->if_array()) out.push_back(std::make_shared<const T>(api::decode<T>(each).value()));
  return out;
}

Json or_empty(const Json* value, Json empty) {
  return value != nullptr ? *value : std::move(empty);
}

Json slice_digest(const api::EndpointSlice& slice) {
  const Json document = api::encode(slice);
  Json endpoints = or_empty(document.find("endpoints"), Json::array());
  std::ranges::stable_sort(*endpoints.if_array(), {},
                           [](const Json& each) { return api::to_text(each.find("addresses")->if_array()->front()); });
  return Json::object({{"addressType", slice.address_type},
                       {"annotations", or_empty(document.at({"metadata", "annotations"}), Json::object())},
                       {"endpoints", std::move(endpoints)},
                       {"generateName", slice.metadata.generate_name},
                       {"labels", or_empty(document.at({"metadata", "labels"}), Json::object())},
                       {"ownerReferences", or_empty(document.at({"metadata", "ownerReferences"}), Json::array())},
                       {"ports", or_empty(document.find("ports"), Json::array())}});
}

Json sorted(Json writes) {
  std::ranges::sort(*writes.if_array(), {}, [](const Json& each) { return api::to_text(each); });
  return writes;
}

/// Upstream takes a list of ports that is absent for another one than an empty one, and writes such a slice at every
/// look; here they are the same. The rows have both: an absent list stands for ports that no pod has.
std::vector<SlicePtr> slices_in(const Json& in) {
  std::vector<SlicePtr> slices;
  for (const SlicePtr& given_slice : given<api::EndpointSlice>(in, "slices")) {
    auto slice = std::make_shared<api::EndpointSlice>(*given_slice);
    const Json& document = (*in.find("slices")->if_array())[slices.size()];
    const Json* ports = document.find("ports");
    if (ports == nullptr || ports->is_null()) slice->ports.emplace_back();
    slices.push_back(std::move(slice));
  }
  return slices;
}

std::optional<Mismatch> check_slices(const Json& in, const Json& want, const api::Service& service) {
  const auto pods = given<api::Pod>(in, "pods");
  const std::vector<SlicePtr> slices = slices_in(in);
  std::map<std::string, std::shared_ptr<const api::Node>> nodes;
  for (const auto& node : given<api::Node>(in, "nodes")) nodes[node->metadata.name] = node;
  const SlicePlan plan = plan_slices({.service = service,
                                      .pods = pods,
                                      .node =
                                          [&nodes](const std::string& name) {
                                            const auto found = nodes.find(name);
                                            return found != nodes.end() ? found->second.get() : nullptr;
                                          },
                                      .slices = slices,
                                      .per_slice = static_cast<std::size_t>(*in.find("max_per_slice")->if_int64())});
  Json writes = Json::array();
  const auto add = [&writes](std::string_view verb, const std::string& name, const api::EndpointSlice* slice) {
    Json write = Json::object({{"resource", "endpointslices"}, {"verb", verb}});
    if (!name.empty()) write["name"] = name;
    if (slice != nullptr) write["object"] = slice_digest(*slice);
    writes.if_array()->push_back(std::move(write));
  };
  for (const api::EndpointSlice& slice : plan.created) add("create", {}, &slice);
  for (const api::EndpointSlice& slice : plan.updated) add("update", slice.metadata.name, &slice);
  for (const SlicePtr& slice : plan.deleted) add("delete", slice->metadata.name, nullptr);
  return support::compare(Json::object({{"writes", sorted(*want.find("writes"))}}),
                          Json::object({{"writes", sorted(std::move(writes))}}));
}

std::optional<Mismatch> check_endpoints(const Json& in, const Json& want, const api::Service& service) {
  const auto pods = given<api::Pod>(in, "pods");
  Json writes = Json::array();
  if (const auto endpoints = plan_endpoints(service, pods, nullptr, std::nullopt)) {
    const Json document = api::encode(*endpoints);
    writes.if_array()->push_back(Json::object(
        {{"name", endpoints->metadata.name},
         {"object", Json::object({{"annotations", or_empty(document.at({"metadata", "annotations"}), Json::object())},
                                  {"labels", or_empty(document.at({"metadata", "labels"}), Json::object())},
                                  {"subsets", or_empty(document.find("subsets"), Json::array())}})},
         {"resource", "endpoints"},
         {"verb", "create"}}));
  }
  return support::compare(want, Json::object({{"writes", std::move(writes)}}));
}

std::optional<Mismatch> check_row(const Json& row) {
  const Json& in = *row.find("in");
  const auto service = api::decode<api::Service>(*in.find("service"));
  if (!service) return Mismatch{"service decodes", service.error().text()};
  const auto check = row.string_at({"op"}) == "slices" ? check_slices : check_endpoints;
  return check(in, *row.find("want"), *service);
}

std::optional<Mismatch> check_subsets(const Json& row) {
  auto endpoints = api::decode<api::Endpoints>(*row.find("in"));
  if (!endpoints) return Mismatch{"subsets that decode", endpoints.error().text()};
  endpoints->subsets = repack(endpoints->subsets);
  const Json document = api::encode(*endpoints);
  return support::compare(*row.find("want"),
                          Json::object({{"subsets", or_empty(document.find("subsets"), Json::array())}}));
}

const bool kSubsets = support::add_vector_check("workloads/repack_subsets", check_subsets);
const bool kEndpointSlices = support::add_vector_check("workloads/endpointslices", check_row);

}  // namespace
}  // namespace spillway::endpoints
