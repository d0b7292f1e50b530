// Definitions with rules, and objects of theirs, as upstream refuses them: cel/crd_rules.
#include "policy/structural/node.h"
#include "policy/structural/object_rules.h"
#include "policy/structural/object_shape.h"
#include "policy/structural/structural_schema.h"
#include "support/field_errors.h"
#include "support/vectors.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::structural {
namespace {

using api::Json;
using support::compare_errors;

constexpr std::string_view kPath = "spec.validation.openAPIV3Schema";

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
