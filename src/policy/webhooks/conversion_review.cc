#include "policy/webhooks/conversion_review.h"

#include "api/json/document_bounds.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::webhooks {

namespace {

using api::Json;

constexpr std::size_t kTextMax = 1'024;  // bytes of a message of a webhook

Error broken(std::string text) {
  return Error{ErrorCode::kInvalid, std::move(text), {}};
}

std::string shown_part(std::string_view text) {
  return shortened(std::string(text), kTextMax);
}

/// The name of a JSON type as upstream's server prints it.
std::string_view type_name(const Json& value) {
  if (value.is_null()) return "<nil>";
  if (value.is_object()) return "map[string]interface {}";
  if (value.is_array()) return "[]interface {}";
  if (value.is_string()) return "string";
  if (value.if_bool()) return "bool";
  return value.if_int64() ? "int64" : "float64";
}

Outcome check_envelope(std::string_view review_version, const Json& review) {
  const std::string wanted = fmt::format("apiextensions.k8s.io/{}", review_version);
  const std::string_view version = review.string_at({"apiVersion"});
  const std::string_view kind = review.string_at({"kind"});
  if (version == wanted && kind == "ConversionReview") return {};
  return broken(fmt::format("expected webhook response of {}, Kind=ConversionReview, got {}, Kind={}", wanted,
                            shown_part(version), shown_part(kind)));
}

}  // namespace

std::string conversion_text(const ConversionRequest& request) {
  const Json uid(request.uid);
  const Json wanted(request.wanted_version);
  std::string text = fmt::format(
      R"({{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/{}","request":{{"uid":{},"desiredAPIVersion":{},"objects":[)",
      request.review_version, api::to_text(uid), api::to_text(wanted));
  std::size_t bytes = text.size() + request.objects.size() + 4;
  for (const std::string_view object : request.objects) bytes += object.size();
  text.reserve(bytes);
  bool first = true;
  for (const std::string_view object : request.objects) {
    if (!std::exchange(first, false)) text += ',';
    text += object;
  }
  text += "]}}";
  return text;
}

Result<std::vector<Json>> read_conversion(std::string_view review_version, std::string_view uid,
                                          std::string_view body) {
  auto review = api::parse_bounded_json(body, nullptr, kConvertedValuesMax);
  if (!review) return broken(std::move(review.error().message));
  if (!review->is_object()) return broken("the answer is no JSON object");
  // The older review is not compared with the request, as upstream.
  const bool is_strict = review_version == "v1";
  if (is_strict) SPILLWAY_TRY_VOID(check_envelope(review_version, *review));
  Json* response = review->find("response");
  if (response == nullptr || !response->is_object()) return broken("no response provided");
  if (const std::string_view answered = response->string_at({"uid"}); is_strict && answered != uid) {
    return broken(fmt::format("expected response.uid=\"{}\", got \"{}\"", uid, shown_part(answered)));
  }
  const std::string_view status = response->string_at({"result", "status"});
  if (status != "Success") {
    const std::string_view why = response->string_at({"result", "message"});
    if (!why.empty()) return broken(shown_part(why));
    return broken(fmt::format("response.result.status was '{}', not 'Success'", shown_part(status)));
  }
  std::vector<Json> objects;
  Json* converted = response->find("convertedObjects");
  if (converted == nullptr || converted->is_null()) return objects;
  if (!converted->is_array()) return broken("response.convertedObjects is no list");
  for (Json& object : *converted->if_array()) objects.push_back(std::move(object));
  return objects;
}

Outcome check_converted(const Json& original, const Json& converted) {
  struct Member {
    std::string_view name;
    std::initializer_list<std::string_view> path;
  };

  for (const Member& member : {Member{"kind", {"kind"}}, Member{"name", {"metadata", "name"}},
                               Member{"namespace", {"metadata", "namespace"}}, Member{"UID", {"metadata", "uid"}}}) {
    const std::string_view before = original.string_at(member.path);
    const std::string_view after = converted.string_at(member.path);
    if (before == after) continue;
    return broken(fmt::format("must have the same {}: {} != {}", member.name, before, shown_part(after)));
  }
  return {};
}

Result<bool> restore_metadata(const Json& original, Json& converted) {
  const Json* answered = std::as_const(converted).find("metadata");
  if (answered == nullptr) return broken("missing metadata in converted object");
  if (!answered->is_object()) {
    return broken(fmt::format("invalid metadata of type {} in converted object", type_name(*answered)));
  }
  const Json* kept = original.find("metadata");
  Json metadata = kept == nullptr ? Json::object() : *kept;
  bool changed = false;
  for (const std::string_view name : {"labels", "annotations"}) {
    const Json* map = answered->find(name);
    if (map == nullptr || map->is_null()) {
      changed = changed || metadata.find(name) != nullptr;
      metadata.erase({name});
      continue;
    }
    if (!map->is_object()) {
      return broken(fmt::format("invalid metadata.{} of type {} in converted object", name, type_name(*map)));
    }
    for (const auto& [key, value] : *map->if_object()) {
      if (value.is_string()) continue;
      return broken(fmt::format("metadata.{}[{}] must be a string, but is {} in converted object", name,
                                shown_part(key), type_name(value)));
    }
    const Json* before = std::as_const(metadata).find(name);
    changed = changed || before == nullptr || !(*before == *map);
    metadata[name] = *map;
  }
  converted["metadata"] = std::move(metadata);
  return changed;
}

}  // namespace spillway::webhooks
