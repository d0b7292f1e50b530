// Definitions with rules, and objects of theirs, as upstream refuses them: cel/crd_rules.
#include "base/utf8.h"
#include "policy/structural/node.h"
#include "policy/structural/object_rules.h"
#include "policy/structural/object_shape.h"
#include "policy/structural/structural_schema.h"
#include "support/vectors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::structural {
namespace {

using api::Json;

constexpr std::string_view kPath = "spec.validation.openAPIV3Schema";

/// This is what the row says of an error and how we tell it: all of the message where it has one, else that it ends as
/// wanted.
struct Told {
  std::string field;
  std::string type;
  std::string message;

  friend auto operator<=>(const Told&, const Told&) = default;
};

Json text_of(const std::vector<Told>& errors) {
  Json list = Json::array();
  for (const Told& error : errors) {
    list.if_array()->push_back(Json(error.field + " " + error.type + ": " + error.message));
  }
  return list;
}

/// `want` gets the message of the error that it is, if that ends as it has to.
std::optional<support::Mismatch> compare_errors(const Json& wanted, const api::FieldErrors& errors) {
  std::vector<Told> got;
  for (const api::FieldError& error : errors.errors()) {
    std::string type(api::to_string(error.reason));
    got.push_back({.field = error.field, .type = std::move(type), .message = error.message});
  }
  std::vector<Told> want;
  for (const Json& error : *wanted.if_array()) {
    Told told{.field = std::string(error.string_at({"field"})), .type = std::string(error.string_at({"type"}))};
    const std::string_view detail = error.string_at({"detail"});
    const std::string_view body = error.string_at({"body"});
    told.message = body.empty() ? detail : body;
    const auto found = std::ranges::find_if(got, [&](const Told& one) {
      return one.field == told.field && one.type == told.type && body.empty() && one.message.ends_with(detail);
    });
    if (found != got.end()) told.message = found->message;
    told.message = shortened(told.message, api::kCauseTextMax);  // as every message of a field is
    want.push_back(std::move(told));
  }
  std::ranges::sort(got);
  std::ranges::sort(want);
  return support::compare(text_of(want), text_of(got));
}

Json completed(const Schema& schema, const Json& given) {
  Json object = given;
  object["apiVersion"] = Json("vectors.example.com/v1");
  object["kind"] = Json("Sample");
  Json& metadata = object["metadata"];
  if (!metadata.is_object()) metadata = Json::object();
  if (metadata.find("name") == nullptr) metadata["name"] = Json("sample");
  metadata["namespace"] = Json("default");
  metadata["resourceVersion"] = Json("1");
  prune(schema, object);
  apply_defaults(schema, object);
  return object;
}

std::optional<support::Mismatch> check_crd_rules(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  api::FieldErrors errors;
  const Schema schema = Schema::read(*in.find("schema"), kPath, errors);
  if (auto mismatch = compare_errors(*want.find("definition_errors"), errors)) return mismatch;
  const Json* objects = in.find("objects");
  const Json* wanted = want.find("objects");
  if (objects == nullptr || wanted == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < wanted->if_array()->size(); ++i) {
    const Json& given = (*objects->if_array())[i];
    const Json object = completed(schema, *given.find("object"));
    std::optional<Json> old;
    if (const Json* before = given.find("oldObject")) old = completed(schema, *before);
    api::FieldErrors found;
    validate_object(schema, object, old ? &*old : nullptr, found);
    if (auto mismatch = compare_errors(*(*wanted->if_array())[i].find("errors"), found)) return mismatch;
  }
  return std::nullopt;
}

const bool kCrdRules = support::add_vector_check("cel/crd_rules", check_crd_rules);

}  // namespace
}  // namespace spillway::structural
