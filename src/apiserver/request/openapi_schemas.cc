#include "apiserver/request/openapi_schemas.h"

#include "api/schema/descriptions.h"
#include "apiserver/request/body.h"
#include "apiserver/resource/custom_kind.h"
#include "policy/structural/open_api.h"

#include <fmt/format.h>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kApiVersionText =
    "APIVersion defines the group and version of the schema this object is written in, as GROUP/VERSION.";
constexpr std::string_view kKindText = "Kind is the type of this object, in CamelCase and in the singular.";
constexpr std::string_view kCustomMetadataText =
    "How the object is called, labelled and owned. Name and namespace cannot be changed.";

/// "core/v1.PodSpec" → "io.k8s.api.core.v1.PodSpec".
std::string schema_name(const api::Type& type) {
  std::string name(type.name());
  const bool meta = name.starts_with("meta/");
  if (const std::size_t slash = name.find('/'); slash != std::string::npos) name[slash] = '.';
  return (meta ? "io.k8s.apimachinery.pkg.apis." : "io.k8s.api.") + name;
}

Json typed(std::string_view type, std::string_view format = {}) {
  Json out = Json::object({{"type", type}});
  if (!format.empty()) out["format"] = format;
  return out;
}

Json described(Json schema, std::string_view description) {
  if (!description.empty()) schema["description"] = description;
  return schema;
}

void describe_type_meta(Json& properties) {
  properties["apiVersion"] = described(typed("string"), kApiVersionText);
  properties["kind"] = described(typed("string"), kKindText);
}

/// Describes the merging of a list: by strategic merge patches and by server-side apply.
void describe_merging(Json& list, const api::Field& field) {
  if (!field.merge_key.empty()) {
    list["x-kubernetes-patch-merge-key"] = field.merge_key;
    list["x-kubernetes-patch-strategy"] = field.retain_keys ? "merge,retainKeys" : "merge";
  } else if (field.merge_set) {
    list["x-kubernetes-patch-strategy"] = "merge";
  }
  switch (field.list_type) {
    case api::ListType::kAtomic:
      list["x-kubernetes-list-type"] = "atomic";
      break;
    case api::ListType::kSet:
      list["x-kubernetes-list-type"] = "set";
      break;
    case api::ListType::kMap:
      list["x-kubernetes-list-type"] = "map";
      list["x-kubernetes-list-map-keys"] = Json::Array(field.list_keys.begin(), field.list_keys.end());
      break;
  }
}

}  // namespace

Json group_version_kind(const Resource& row) {
  return Json::object({{"group", row.group}, {"version", row.version}, {"kind", row.kind}});
}

std::string schema_name(const Resource& row) {
  if (row.custom == nullptr) return schema_name(type_of(row));
  std::string name;
  std::string_view rest = row.group;
  while (!rest.empty()) {
    const std::size_t dot = rest.rfind('.');
    name += rest.substr(dot == std::string_view::npos ? 0 : dot + 1);
    name += '.';
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(0, dot);
  }
  return fmt::format("{}{}.{}", name, row.version, row.kind);
}

Json OpenApiSchemas::reference_to(const std::string& name) const {
  return Json::object(
      {{"$ref", (version_ == OpenApiVersion::kV3 ? "#/components/schemas/" : "#/definitions/") + name}});
}

/// kubectl 1.27 and later read the description beside `allOf`, earlier ones that beside the reference.
Json OpenApiSchemas::described_reference(Json reference, std::string_view description) const {
  if (version_ == OpenApiVersion::kV2) return described(std::move(reference), description);
  return described(Json::object({{"allOf", Json::array({std::move(reference)})}}), description);
}

Json OpenApiSchemas::reference(const Resource& row) {
  if (row.custom == nullptr) return reference(type_of(row));
  const std::string name = schema_name(row);
  if (known_.insert(name).second) custom_.emplace_back(name, custom_schema(row));
  return reference_to(name);
}

Json OpenApiSchemas::reference(const api::Type& type) {
  const std::string name = schema_name(type);
  if (known_.insert(name).second) waiting_.push_back(&type);
  return reference_to(name);
}

std::optional<std::pair<std::string, Json>> OpenApiSchemas::next() {
  if (!custom_.empty()) {
    auto one = std::move(custom_.back());
    custom_.pop_back();
    return one;
  }
  if (waiting_.empty()) return std::nullopt;
  const api::Type& type = *waiting_.back();
  waiting_.pop_back();
  return std::pair(schema_name(type), schema_of(type));
}

Json OpenApiSchemas::finish() {
  Json schemas = Json::object();
  while (auto one = next()) schemas[one->first] = std::move(one->second);
  return schemas;
}

/// The schema of a definition, with the members that every object has.
Json OpenApiSchemas::custom_schema(const Resource& row) {
  const structural::Schema& declared = row.custom->schema;
  Json schema = version_ == OpenApiVersion::kV3 ? structural::open_api_v3(declared) : structural::open_api_v2(declared);
  if (!schema.is_object()) schema = Json::object();
  const Json* keeps_unknown = schema.find("x-kubernetes-preserve-unknown-fields");
  if (version_ == OpenApiVersion::kV2 && keeps_unknown != nullptr && keeps_unknown->if_bool().value_or(false)) {
    // Clients of OpenAPI v2 refuse members that a list of properties does not name.
    return Json::object({{"type", "object"}, {kGroupVersionKind, Json::array({group_version_kind(row)})}});
  }
  schema["type"] = "object";
  Json& properties = schema["properties"];
  if (!properties.is_object()) properties = Json::object();
  describe_type_meta(properties);
  properties["metadata"] = described_reference(reference(*api::find_type("meta/v1.ObjectMeta")), kCustomMetadataText);
  schema[kGroupVersionKind] = Json::array({group_version_kind(row)});
  return schema;
}

Json OpenApiSchemas::schema_of(const api::Type& type) {
  Json properties = Json::object();
  if (type.has_type_meta()) describe_type_meta(properties);
  Json::Array required;
  for (const auto& [name, field] : type.json_fields()) {
    properties[name] = property_of(*field, api::description_of(type, name));
    if (field->required) required.emplace_back(name);
  }
  Json schema =
      described(Json::object({{"type", "object"}, {"properties", std::move(properties)}}), api::description_of(type));
  if (!required.empty()) schema["required"] = std::move(required);
  if (type.has_type_meta()) {
    const std::string_view api_version = type.api_version();
    const std::size_t slash = api_version.find('/');
    const std::string_view version = slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
    schema[kGroupVersionKind] =
        Json::array({Json::object({{"group", type.group()}, {"version", version}, {"kind", type.kind()}})});
  }
  return schema;
}

Json OpenApiSchemas::property_of(const api::Field& field, std::string_view description) {
  Json value = value_of(field);
  if (field.shape == api::Shape::kSingle) {
    if (field.kind != api::ValueKind::kMessage || field.or_other) return described(std::move(value), description);
    Json property = described_reference(std::move(value), description);
    if (field.retain_keys) property["x-kubernetes-patch-strategy"] = "retainKeys";
    return property;
  }
  if (field.shape == api::Shape::kMap) {
    return described(Json::object({{"type", "object"}, {"additionalProperties", std::move(value)}}), description);
  }
  Json list = described(Json::object({{"type", "array"}, {"items", std::move(value)}}), description);
  describe_merging(list, field);
  return list;
}

Json OpenApiSchemas::value_of(const api::Field& field) {
  switch (field.kind) {
    case api::ValueKind::kString:
    case api::ValueKind::kQuantity:
      return typed("string");
    case api::ValueKind::kBool:
      return typed("boolean");
    case api::ValueKind::kInt32:
      return typed("integer", "int32");
    case api::ValueKind::kInt64:
      return typed("integer", "int64");
    case api::ValueKind::kBytes:
      return typed("string", "byte");
    case api::ValueKind::kTime:
    case api::ValueKind::kMicroTime:
      return typed("string", "date-time");
    case api::ValueKind::kIntOrString:
      return typed("string", "int-or-string");
    case api::ValueKind::kNumber:
      return typed("number");
    case api::ValueKind::kRawJson:
      return Json::object();  // anything
    case api::ValueKind::kStrings:
      return Json::object({{"type", "array"}, {"items", typed("string")}});
    case api::ValueKind::kMessage:
      // A value that need not be an object must not be called one: older clients check by it.
      if (field.or_other) return Json::object();
      return reference(*field.message);
  }
  return {};
}

}  // namespace spillway::apiserver
