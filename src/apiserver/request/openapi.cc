#include "apiserver/request/openapi.h"

#include "apiserver/request/openapi_protobuf.h"
#include "apiserver/request/openapi_schemas.h"
#include "apiserver/resource/custom_kind.h"
#include "base/rng.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kTitle = "Spillway";

Json operation(const Resource& row, std::string_view action, Json reference) {
  Json content = Json::object({{"schema", std::move(reference)}});
  Json response =
      Json::object({{"description", "OK"}, {"content", Json::object({{"application/json", std::move(content)}})}});
  return Json::object({{"x-kubernetes-action", action},
                       {kGroupVersionKind, group_version_kind(row)},
                       {"responses", Json::object({{"200", std::move(response)}})}});
}

Json field_validation() {
  return Json::object({{"name", "fieldValidation"}, {"in", "query"}, {"schema", Json::object({{"type", "string"}})}});
}

OpenApi::Document hashed(std::string text) {
  const std::uint64_t hash = fnv1a64(text);
  return {std::move(text), hash};
}

std::string document_path(std::string_view group, std::string_view version) {
  return group.empty() ? "api/" + std::string(version) : "apis/" + std::string(group) + "/" + std::string(version);
}

}  // namespace

Json OpenApi::build(std::string_view group, std::string_view version) const {
  OpenApiSchemas schemas(OpenApiVersion::kV3);
  Json paths = Json::object();
  const std::string prefix = "/" + document_path(group, version);
  for (const Resource& row : registry_.all()) {
    if (row.group != group || row.version != version) continue;
    const Json reference = schemas.reference(row);
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
                       {"info", Json::object({{"title", kTitle}, {"version", version_}})},
                       {"paths", std::move(paths)},
                       {"components", Json::object({{"schemas", schemas.finish()}})}});
}

std::string OpenApi::document_text(const Resource& row) const {
  return api::to_text(build(row.group, row.version)) + "\n";
}

const OpenApi::Document* OpenApi::v3_document(const std::string& path) {
  forget_others();
  for (const auto* documents : {&built_in_, &custom_}) {
    if (const auto found = documents->find(path); found != documents->end()) return &found->second;
  }
  for (const Resource& row : registry_.all()) {
    if (document_path(row.group, row.version) != path) continue;
    auto& documents = row.custom == nullptr ? built_in_ : custom_;
    return &documents.emplace(path, hashed(document_text(row))).first->second;
  }
  return nullptr;
}

/// Of custom kinds by what defines them, of built-in ones by their document, which is made for it once and kept only if
/// somebody asks for it.
std::uint64_t OpenApi::hash_of(const std::string& path, const Resource& row) {
  if (row.custom == nullptr) {
    const auto [known, fresh] = built_in_hashes_.try_emplace(path, 0);
    if (fresh) known->second = hashed(document_text(row)).hash;
    return known->second;
  }
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

/// Custom kinds without their fields: a client refuses the whole document for one schema that it cannot read.
std::string OpenApi::make_v2_protobuf() const {
  OpenApiSchemas schemas(OpenApiVersion::kV2);
  std::vector<const Resource*> custom;
  for (const Resource& row : registry_.all()) {
    if (row.custom != nullptr) {
      custom.push_back(&row);
    } else {
      static_cast<void>(schemas.reference(row));
    }
  }
  Json definitions = schemas.finish();
  for (const Resource* row : custom) {
    Json& definition = definitions[schema_name(*row)];
    if (!definition.is_null()) continue;  // a name that a built-in type has
    const std::string_view described = row->custom->schema.document().string_at({"description"});
    definition = Json::object({{"description", described.empty() ? row->kind : described},
                               {"type", "object"},
                               {kGroupVersionKind, Json::array({group_version_kind(*row)})}});
  }
  return open_api_v2_protobuf(kTitle, version_, definitions);
}

const OpenApi::Document& OpenApi::v2_json() {
  forget_others();
  if (!v2_json_) v2_json_ = hashed(make_v2_json());
  return *v2_json_;
}

std::string OpenApi::make_v2_json() const {
  OpenApiSchemas schemas(OpenApiVersion::kV2);
  for (const Resource& row : registry_.all()) static_cast<void>(schemas.reference(row));
  return api::to_text(Json::object({{"swagger", "2.0"},
                                    {"info", Json::object({{"title", kTitle}, {"version", version_}})},
                                    {"paths", Json::object()},
                                    {"definitions", schemas.finish()}})) +
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
