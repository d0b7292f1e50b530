#include "policy/structural/open_api.h"

#include "policy/structural/schema_members.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace spillway::structural {

namespace {

using api::Json;

constexpr std::string_view kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

enum class OpenApi : std::uint8_t { kV2, kV3 };

Json reference(OpenApi version) {
  return Json(std::string(version == OpenApi::kV3 ? "#/components/schemas/" : "#/definitions/") +
              std::string(kObjectMeta));
}

/// Describes an embedded resource: the members that every resource has.
void describe_resource(Json& schema, OpenApi version) {
  Json& properties = schema["properties"];
  properties["apiVersion"] = Json::object(
      {{"description", "The group and version of the schema of this object, as GROUP/VERSION."}, {"type", "string"}});
  properties["kind"] =
      Json::object({{"description", "What this object is, in camel case, in the singular."}, {"type", "string"}});
  properties["metadata"] =
      version == OpenApi::kV3
          ? Json::object({{"allOf", Json::array({Json::object({{"$ref", reference(version)}})})},
                          {"default", Json::object()},
                          {"description", "Metadata that every object has."}})
          : Json::object({{"$ref", reference(version)}, {"description", "Metadata that every object has."}});
}

Json published(const Json& schema, OpenApi version, bool root);

void publish_below(Json& schema, OpenApi version, bool root) {
  for (const std::string_view name : {"items", "additionalProperties", "not"}) {
    Json* inner = schema.find(name);
    if (inner != nullptr && inner->is_object()) *inner = published(*inner, version, false);
  }
  for (const std::string_view name : {"allOf", "anyOf", "oneOf"}) {
    Json* list = schema.find(name);
    if (list == nullptr || !list->is_array()) continue;
    for (Json& one : *list->if_array()) one = published(one, version, false);
  }
  Json* properties = schema.find("properties");
  if (properties == nullptr || !properties->is_object()) return;
  if (root) {
    for (const std::string_view name : {"apiVersion", "kind", "metadata"}) properties->if_object()->erase(name);
  }
  for (auto& [name, property] : *properties->if_object()) property = published(property, version, false);
}

/// Removes keywords that OpenAPI v2 lacks.
void reduce(Json& schema) {
  Json::Object& members = *schema.if_object();
  for (const std::string_view name : {"allOf", "anyOf", "oneOf", "not"}) members.erase(name);
  if (flag(schema, "nullable")) {
    for (const std::string_view name :
         {"type", "nullable", "items", "properties", "additionalProperties", "required"}) {
      members.erase(name);
    }
  }
  members.erase("nullable");
  if (flag(schema, "x-kubernetes-int-or-string")) members.erase("type");
  if (flag(schema, "x-kubernetes-preserve-unknown-fields")) {
    for (const std::string_view name : {"items", "properties", "additionalProperties", "required"}) members.erase(name);
    if (!flag(schema, "x-kubernetes-embedded-resource")) members.erase("type");
  }
}

Json published(const Json& schema, OpenApi version, bool root) {
  if (!schema.is_object()) return schema;
  Json made = schema;
  made.if_object()->erase("externalDocs");
  if (version == OpenApi::kV2) reduce(made);
  publish_below(made, version, root);
  if (!root && flag(made, "x-kubernetes-embedded-resource")) describe_resource(made, version);
  return made;
}

}  // namespace

Json open_api_v3(const Schema& schema) {
  return published(schema.document(), OpenApi::kV3, true);
}

Json open_api_v2(const Schema& schema) {
  return published(schema.document(), OpenApi::kV2, true);
}

}  // namespace spillway::structural
