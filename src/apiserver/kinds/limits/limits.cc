#include "apiserver/kinds/limits/limits.h"

#include "api/codec/codec.h"
#include "api/object/limit_range.h"
#include "api/object/pod.h"
#include "apiserver/kinds/fields/fields.h"
#include "policy/limits/limit_range.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

using api::Json;

/// The LimitRanges of the object's namespace. An error: one of them cannot be parsed, so the limits are unknown.
Result<std::vector<api::LimitRange>> ranges_for(const Json& object, const AdmissionContext& context) {
  std::vector<api::LimitRange> ranges;
  std::optional<Error> error;
  if (!context.rules.limit_ranger) return ranges;
  context.cluster.visit("limitranges", object.string_at({"metadata", "namespace"}), [&](const Json& document) {
    auto range = api::decode<api::LimitRange>(document);
    if (range) {
      ranges.push_back(*std::move(range));
    } else {
      error = make_error(ErrorCode::kInvalid, "LimitRange {} cannot be read: {}",
                         document.string_at({"metadata", "name"}), range.error().text());
    }
    return !error;
  });
  if (error) return *error;
  return ranges;
}

/// Writes defaulted amounts, which the document does not state.
void write_amounts(const api::ResourceList& amounts, Json& container, std::string_view list) {
  for (const auto& [resource, amount] : amounts) {
    Json& at = container.make({"resources", list, resource});
    if (at.is_null()) at = amount.to_string();
  }
}

void write_resources(const std::vector<api::Container>& filled, Json* list) {
  Json::Array* containers = list == nullptr ? nullptr : list->if_array();
  if (containers == nullptr) return;
  for (std::size_t i = 0; i < filled.size() && i < containers->size(); ++i) {
    write_amounts(filled[i].resources.limits, (*containers)[i], "limits");
    write_amounts(filled[i].resources.requests, (*containers)[i], "requests");
  }
}

/// Joins several problems as a list, each text once.
std::string joined(const std::vector<std::string>& problems) {
  std::vector<std::string_view> distinct;
  for (const std::string& each : problems) {
    if (std::ranges::find(distinct, each) == distinct.end()) distinct.emplace_back(each);
  }
  return distinct.size() == 1 ? std::string(distinct.front()) : fmt::format("[{}]", fmt::join(distinct, ", "));
}

template <typename Problems>
api::StatusResult<void> confirm(std::string_view plural, const Json& object, const AdmissionContext& context,
                                Problems problems_of) {
  const auto refuse = [&](std::string_view why) {
    return api::forbidden_status({"", std::string(plural)}, object.string_at({"metadata", "name"}), why);
  };
  const auto ranges = ranges_for(object, context);
  if (!ranges) return refuse(ranges.error().message);
  for (const api::LimitRange& each : *ranges) {
    const Result<std::vector<std::string>> problems = problems_of(each);
    if (!problems) return refuse(problems.error().text());
    if (!problems->empty()) return refuse(joined(*problems));
  }
  return {};
}

}  // namespace

void fill_in_limits(Json& pod, const AdmissionContext& context) {
  const auto ranges = ranges_for(pod, context);
  if (!ranges || ranges->empty()) return;  // confirm_pod_limits() reports the error
  auto spec = api::decode<api::PodSpec>(value_of(pod, "spec"));
  if (!spec) return;  // validation refuses the pod
  std::string filled;
  for (const api::LimitRange& each : *ranges) {
    if (std::string now = limits::fill_in(each, *spec); !now.empty()) filled = std::move(now);
  }
  if (filled.empty()) return;
  write_resources(spec->containers, pod.find("spec")->find("containers"));
  write_resources(spec->init_containers, pod.find("spec")->find("initContainers"));
  pod.make({"metadata", "annotations", limits::kFilledAnnotation}) = std::move(filled);
  pod.make({"status"})["qosClass"] = api::to_string(api::compute_qos(*spec));
}

api::StatusResult<void> confirm_pod_limits(const Json& pod, const AdmissionContext& context) {
  std::optional<Result<api::Pod>> typed;
  const auto ask = [&](const api::LimitRange& range) -> Result<std::vector<std::string>> {
    if (!typed) typed = api::decode<api::Pod>(pod);
    if (!*typed) return typed->error();
    return limits::pod_problems(range, **typed);
  };
  return confirm("pods", pod, context, ask);
}

api::StatusResult<void> confirm_claim_limits(const Json& claim, const AdmissionContext& context) {
  api::ResourceList requests;
  if (const Json* amount = claim.at({"spec", "resources", "requests", "storage"})) {
    const auto storage = api::parse_quantity(amount->string_at({}));
    if (storage) requests.emplace("storage", *storage);
  }
  return confirm("persistentvolumeclaims", claim, context,
                 [&requests](const api::LimitRange& range) -> Result<std::vector<std::string>> {
                   return limits::claim_problems(range, requests);
                 });
}

}  // namespace spillway::apiserver::kinds
