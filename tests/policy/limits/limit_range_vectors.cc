// vectors/workloads: limitrange_defaults.
#include "api/codec/codec.h"
#include "policy/limits/limit_range.h"
#include "support/vectors.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace spillway::limits {
namespace {

using api::Json;
using support::Mismatch;

Json sorted_list(std::vector<std::string> texts) {
  std::ranges::sort(texts);
  Json list = Json::array();
  for (std::string& each : texts) list.if_array()->emplace_back(std::move(each));
  return list;
}

void put(Json& into, std::string_view key, const api::ResourceList& amounts) {
  if (amounts.empty()) return;
  Json& list = into[key] = Json::object();
  for (const auto& [resource, amount] : amounts) list[resource] = amount.to_string();
}

void put(Json& into, const std::vector<api::Container>& containers) {
  for (const api::Container& each : containers) {
    Json& resources = into[each.name] = Json::object();
    put(resources, "limits", each.resources.limits);
    put(resources, "requests", each.resources.requests);
  }
}

std::optional<Mismatch> check_limits(const Json& row) {
  std::vector<api::LimitRange> ranges;
  for (const Json& each : *row.at({"in", "limitranges"})->if_array()) {
    auto range = api::decode<api::LimitRange>(each);
    if (!range) return Mismatch{"limitranges decode", range.error().text()};
    ranges.push_back(*std::move(range));
  }
  Json got = Json::object({{"errors", Json::array()}});
  Json::Array& errors = *got["errors"].if_array();
  if (row.string_at({"op"}) == "claim") {
    const Json* requests = row.at({"in", "claim", "spec", "resources", "requests"});
    api::ResourceList asked;
    if (requests != nullptr) {
      for (const auto& [resource, amount] : *requests->if_object())
        asked.emplace(resource, *api::parse_quantity(amount.string_at({})));
    }
    for (const api::LimitRange& each : ranges) errors.push_back(sorted_list(claim_problems(each, asked)));
    return support::compare(*row.find("want"), got);
  }
  auto pod = api::decode<api::Pod>(*row.at({"in", "pod"}));
  if (!pod) return Mismatch{"pod decodes", pod.error().text()};
  std::string annotation;
  for (const api::LimitRange& each : ranges) {
    if (std::string filled = fill_in(each, pod->spec); !filled.empty()) annotation = std::move(filled);
  }
  for (const api::LimitRange& each : ranges) errors.push_back(sorted_list(pod_problems(each, *pod)));
  if (!annotation.empty()) got["annotation"] = annotation;
  got["containers"] = Json::object();
  put(got["containers"], pod->spec.containers);
  put(got["containers"], pod->spec.init_containers);
  return support::compare(*row.find("want"), got);
}

const bool kLimitRanges = support::add_vector_check("workloads/limitrange_defaults", check_limits);

}  // namespace
}  // namespace spillway::limits
