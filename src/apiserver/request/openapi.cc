#include "apiserver/request/openapi.h"

#include "api/schema/schema.h"
#include "apiserver/request/body.h"
#include "apiserver/resource/custom_kind.h"
#include "base/rng.h"
#include "policy/structural/open_api.h"

#include <fmt/format.h>

#include <set>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kGvk = "x-kubernetes-group-version-kind";

/// "core/v1.PodSpec" → "io.k8s.api.core.v1.PodSpec".
std::string component_name(const api::Type& type) {
  std::string name(type.name());
  const bool meta = name.starts_with("meta/");
  if (const std::size_t slash = name.find('/'); slash != std::string::npos) name[slash] = '.';
  return (meta ? "io.k8s.apimachinery.pkg.apis." : "io.k8s.api.") + name;
}

/// "stable.example.com", v1, CronTab → "com.example.stable.v1.CronTab".
std::string component_name(const Resource& row) {
  if (row.custom == nullptr) return component_name(type_of(row));
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

Json gvk(std::string_view group, std::string_view version, std::string_view kind) {
  return Json::object({{"group", group}, {"version", version}, {"kind", kind}});
}

Json typed(std::string_view type, std::string_view format = {}) {
  Json out = Json::object({{"type", type}});
  if (!format.empty()) out["format"] = format;
  return out;
}

/// What a definition says, and what every object has.
Json custom_schema(const Resource& row, Json schema, Json metadata) {
  if (!schema.is_object()) schema = Json::object();
  schema["type"] = "object";
  Json& properties = schema["properties"];
  if (!properties.is_object()) properties = Json::object();
  properties["apiVersion"] = typed("string");
  properties["apiVersion"]["description"] = "The version of the schema that this object is written in.";
  properties["kind"] = typed("string");
  properties["kind"]["description"] = "What this object is.";
  properties["metadata"] = std::move(metadata);
  properties["metadata"]["description"] = "What every object has: its name, labels, owners.";
  schema[kGvk] = Json::array({gvk(row.group, row.version, row.kind)});
  return schema;
}

/// The schemas of a document: those asked for and all they refer to.
class Components {
 public:
  Json reference(const Resource& row) {
    if (row.custom == nullptr) return reference(type_of(row));
    const std::string name = component_name(row);
    if (known_.insert(name).second) {
      Json metadata = Json::object({{"allOf", Json::array({reference(*api::find_type("meta/v1.ObjectMeta"))})}});
      custom_.push_back({name, custom_schema(row, structural::open_api_v3(row.custom->schema), std::move(metadata))});
    }
    return Json::object({{"$ref", "#/components/schemas/" + name}});
  }

  Json reference(const api::Type& type) {
    const std::string name = component_name(type);
    if (known_.insert(name).second) waiting_.push_back(&type);
    return Json::object({{"$ref", "#/components/schemas/" + name}});
  }

  Json finish() {
    Json schemas = Json::object();
    for (auto& [name, schema] : custom_) schemas[name] = std::move(schema);
    while (!waiting_.empty()) {
      const api::Type& type = *waiting_.back();
      waiting_.pop_back();
      schemas[component_name(type)] = schema_of(type);
    }
    return schemas;
  }

 private:
  Json schema_of(const api::Type& type) {
    Json properties = Json::object();
    if (type.has_type_meta()) {
      properties["apiVersion"] = typed("string");
      properties["kind"] = typed("string");
    }
    for (const auto& [name, field] : type.json_fields()) properties[name] = property_of(*field);
    Json schema = Json::object({{"type", "object"}, {"properties", std::move(properties)}});
    if (type.has_type_meta()) {
      const std::string_view api_version = type.api_version();
      const std::size_t slash = api_version.find('/');
      const std::string_view version = slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
      schema[kGvk] = Json::array({gvk(type.group(), version, type.kind())});
    }
    return schema;
  }

  Json property_of(const api::Field& field) {
    Json value = value_of(field);
    if (field.shape == api::Shape::kSingle) {
      if (!field.retain_keys) return value;
      return Json::object({{"allOf", Json::array({std::move(value)})}, {"x-kubernetes-patch-strategy", "retainKeys"}});
    }
    if (field.shape == api::Shape::kMap) {
      return Json::object({{"type", "object"}, {"additionalProperties", std::move(value)}});
    }
    Json list = Json::object({{"type", "array"}, {"items", std::move(value)}});
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
    return list;
  }

  Json value_of(const api::Field& field) {
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
        return typed("object");
      case api::ValueKind::kStrings:
        return Json::object({{"type", "array"}, {"items", typed("string")}});
      case api::ValueKind::kMessage:
        return reference(*field.message);
    }
    return {};
  }

  std::set<std::string> known_;
  std::vector<const api::Type*> waiting_;
  std::vector<std::pair<std::string, Json>> custom_;
};

Json operation(const Resource& row, std::string_view action, Json reference) {
  Json content = Json::object({{"schema", std::move(reference)}});
  Json response =
      Json::object({{"description", "OK"}, {"content", Json::object({{"application/json", std::move(content)}})}});
  return Json::object({{"x-kubernetes-action", action},
                       {kGvk, gvk(row.group, row.version, row.kind)},
                       {"responses", Json::object({{"200", std::move(response)}})}});
}

Json field_validation() {
  return Json::object({{"name", "fieldValidation"}, {"in", "query"}, {"schema", typed("string")}});
}

OpenApi::Document hashed(std::string text) {
  const std::uint64_t hash = fnv1a64(text);
  return {std::move(text), hash};
}

std::string document_path(std::string_view group, std::string_view version) {
  return group.empty() ? "api/" + std::string(version) : "apis/" + std::string(group) + "/" + std::string(version);
}

// Protobuf, as little of it as the v2 document needs: every field is length-delimited and numbered below 2048.
void append_varint(std::string& out, std::size_t value) {
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7fU) | 0x80U);
    value >>= 7U;
  }
  out += static_cast<char>(value);
}

std::string message(std::size_t field, std::string_view bytes) {
  std::string out;
  append_varint(out, (field << 3U) | 2U);
  append_varint(out, bytes.size());
  out += bytes;
  return out;
}

}  // namespace

Json OpenApi::build(std::string_view group, std::string_view version) const {
  Components components;
  Json paths = Json::object();
  const std::string prefix = "/" + document_path(group, version);
  for (const Resource& row : registry_.all()) {
    if (row.group != group || row.version != version) continue;
    const Json reference = components.reference(row);
    const std::string collection =
        prefix + (row.namespaced() ? "/namespaces/{namespace}/" : "/") + std::string(row.plural);
    Json on_collection = Json::object();
    if (row.verbs.has(Verb::kList)) on_collection["get"] = operation(row, "list", reference);
    if (row.verbs.has(Verb::kCreate)) {
      on_collection["post"] = operation(row, "post", reference);
      on_collection["post"]["parameters"] = Json::array({field_validation()});
    }
    paths[collection] = std::move(on_collection);
    if (!row.verbs.has(Verb::kGet)) continue;
    Json on_object = Json::object({{"get", operation(row, "get", reference)}});
    for (const auto& [verb, method] : {std::pair{Verb::kUpdate, "put"}, std::pair{Verb::kPatch, "patch"}}) {
      if (!row.verbs.has(verb)) continue;
      on_object[method] = operation(row, method, reference);
      on_object[method]["parameters"] = Json::array({field_validation()});
    }
    paths[collection + "/{name}"] = std::move(on_object);
  }
  return Json::object({{"openapi", "3.0.0"},
                       {"info", Json::object({{"title", "Spillway"}, {"version", version_}})},
                       {"paths", std::move(paths)},
                       {"components", Json::object({{"schemas", components.finish()}})}});
}

const OpenApi::Document* OpenApi::v3_document(const std::string& path) {
  forget_others();
  for (const auto* documents : {&built_in_, &custom_}) {
    if (const auto found = documents->find(path); found != documents->end()) return &found->second;
  }
  for (const Resource& row : registry_.all()) {
    if (document_path(row.group, row.version) != path) continue;
    auto& documents = row.custom == nullptr ? built_in_ : custom_;
    return &documents.emplace(path, hashed(api::to_text(build(row.group, row.version)) + "\n")).first->second;
  }
  return nullptr;
}

/// Of custom kinds by what defines them: their documents are made when somebody asks.
std::uint64_t OpenApi::hash_of(const std::string& path, const Resource& row) {
  if (row.custom == nullptr) return v3_document(path)->hash;
  std::uint64_t hash = fnv1a64(path);
  for (const Resource& other : registry_.all()) {
    if (other.custom == nullptr || other.group != row.group || other.version != row.version) continue;
    hash = fnv1a64(fmt::format("{} {}", other.plural, other.custom->kind->digest()), hash);
  }
  return hash;
}

const OpenApi::Document& OpenApi::v3_index() {
  forget_others();
  if (!index_) index_ = hashed(make_index());
  return *index_;
}

std::string OpenApi::make_index() {
  Json paths = Json::object();
  for (const Resource& row : registry_.all()) {
    const std::string path = document_path(row.group, row.version);
    if (paths.find(path) != nullptr) continue;
    paths[path] =
        Json::object({{"serverRelativeURL", fmt::format("/openapi/v3/{}?hash={:016X}", path, hash_of(path, row))}});
  }
  return api::to_text(Json::object({{"paths", std::move(paths)}})) + "\n";
}

const OpenApi::Document& OpenApi::v2_protobuf() {
  forget_others();
  if (!v2_protobuf_) v2_protobuf_ = hashed(make_v2_protobuf());
  return *v2_protobuf_;
}

std::string OpenApi::make_v2_protobuf() const {
  std::string definitions;
  for (const Resource& row : registry_.all()) {
    const std::string extension =
        fmt::format("- group: \"{}\"\n  kind: {}\n  version: {}\n", row.group, row.kind, row.version);
    const std::string schema = message(4, row.kind) + message(22, message(1, "object")) +
                               message(31, message(1, kGvk) + message(2, message(2, extension)));
    definitions += message(1, message(1, component_name(row)) + message(2, schema));
  }
  return message(1, "2.0") + message(2, message(1, "Spillway") + message(2, version_)) + message(8, "") +
         message(9, definitions);
}

const OpenApi::Document& OpenApi::v2_json() {
  forget_others();
  if (!v2_json_) v2_json_ = hashed(make_v2_json());
  return *v2_json_;
}

std::string OpenApi::make_v2_json() const {
  Json definitions = Json::object();
  for (const Resource& row : registry_.all()) {
    definitions[component_name(row)] =
        row.custom != nullptr
            ? custom_schema(row, structural::open_api_v2(row.custom->schema), typed("object"))
            : Json::object({{"type", "object"}, {kGvk, Json::array({gvk(row.group, row.version, row.kind)})}});
  }
  return api::to_text(Json::object({{"swagger", "2.0"},
                                    {"info", Json::object({{"title", "Spillway"}, {"version", version_}})},
                                    {"paths", Json::object()},
                                    {"definitions", std::move(definitions)}})) +
         "\n";
}

/// What tells of another table of resources.
void OpenApi::forget_others() {
  if (std::exchange(generation_, registry_.generation()) == registry_.generation()) return;
  custom_.clear();
  index_.reset();
  v2_json_.reset();
  v2_protobuf_.reset();
}

}  // namespace spillway::apiserver
