#include "apiserver/request/openapi.h"

#include "apiserver/request/openapi_merge.h"
#include "apiserver/request/openapi_protobuf.h"
#include "apiserver/request/openapi_schemas.h"
#include "apiserver/request/remote_groups.h"
#include "apiserver/resource/custom_kind.h"
#include "base/rng.h"

#include <fmt/format.h>

#include <algorithm>
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

void add_paths(const Resource& row, const Json& reference, Json& paths) {
  const std::string collection = "/" + document_path(row.group, row.version) +
                                 (row.namespaced() ? "/namespaces/{namespace}/" : "/") + std::string(row.plural);
  Json on_collection = Json::object();
  if (row.verbs.has(Verb::kList)) on_collection["get"] = operation(row, "list", reference);
  if (row.verbs.has(Verb::kCreate)) {
    on_collection["post"] = operation(row, "post", reference);
    on_collection["post"]["parameters"] = Json::array({field_validation()});
  }
  paths[collection] = std::move(on_collection);
  if (!row.verbs.has(Verb::kGet)) return;
  Json on_object = Json::object({{"get", operation(row, "get", reference)}});
  for (const auto& [verb, method] : {std::pair{Verb::kUpdate, "put"}, std::pair{Verb::kPatch, "patch"}}) {
    if (!row.verbs.has(verb)) continue;
    on_object[method] = operation(row, method, reference);
    on_object[method]["parameters"] = Json::array({field_validation()});
  }
  paths[collection + "/{name}"] = std::move(on_object);
}

/// Moves texts to the end of `out` as members of an object, in their order. False: the slice is used up.
bool move_members(OpenApiMerge::Texts& texts, std::string& out, SliceBudget& budget) {
  while (!texts.empty()) {
    if (!budget.take(texts.begin()->second.size() / kCopyShare)) return false;
    const auto one = texts.extract(texts.begin());
    if (!out.ends_with('{')) out += ',';
    out += api::to_text(Json(one.key()));
    out += ':';
    out += one.mapped();
  }
  return true;
}

}  // namespace

/// A document that is being made: the schemas as text, by name, then the whole.
struct OpenApi::Making {
  explicit Making(OpenApiVersion version) : schemas(version) {}

  OpenApiSchemas schemas;
  std::vector<const Resource*> rows;
  std::size_t next_row = 0;
  api::Json paths = api::Json::object();
  OpenApiMerge::Texts texts;
  OpenApiMerge merge{{}};  // for v2
  bool is_joined = false;  // no schema is missing: `texts` are moved to `text`
  bool is_after_definitions = false;
  bool is_after_parameters = false;
  std::string text;
};

OpenApi::OpenApi(const ResourceRegistry& registry, std::string version, const RemoteGroups* remote)
    : registry_(registry), version_(std::move(version)), remote_(remote) {}

OpenApi::~OpenApi() = default;

Json OpenApi::build(std::string_view group, std::string_view version) const {
  OpenApiSchemas schemas(OpenApiVersion::kV3);
  Json paths = Json::object();
  for (const Resource& row : registry_.all()) {
    if (row.group == group && row.version == version) add_paths(row, schemas.reference(row), paths);
  }
  return Json::object({{"openapi", "3.0.0"},
                       {"info", Json::object({{"title", kTitle}, {"version", version_}})},
                       {"paths", std::move(paths)},
                       {"components", Json::object({{"schemas", schemas.finish()}})}});
}

std::string OpenApi::document_text(const Resource& row) const {
  return api::to_text(build(row.group, row.version)) + "\n";
}

bool OpenApi::has(const Page& page) const {
  if (page.of != Page::Of::kV3Document) return true;
  return std::ranges::any_of(registry_.all(),
                             [&](const Resource& row) { return document_path(row.group, row.version) == page.path; });
}

const OpenApi::Document* OpenApi::find(const Page& page) {
  forget_others();
  const auto made = [](const std::optional<Document>& document) { return document ? &*document : nullptr; };
  switch (page.of) {
    case Page::Of::kV2Json:
      return made(v2_json_);
    case Page::Of::kV2Protobuf:
      return made(v2_protobuf_);
    case Page::Of::kV3Index:
      return made(index_);
    case Page::Of::kV3Document:
      break;
  }
  for (const auto* documents : {&built_in_, &custom_}) {
    if (const auto found = documents->find(page.path); found != documents->end()) return &found->second;
  }
  return nullptr;
}

const OpenApi::Document* OpenApi::keep(const Page& page, std::string text) {
  switch (page.of) {
    case Page::Of::kV2Json:
      return &v2_json_.emplace(hashed(std::move(text)));
    case Page::Of::kV2Protobuf:
      return &v2_protobuf_.emplace(hashed(std::move(text)));
    case Page::Of::kV3Index:
      return &index_.emplace(hashed(std::move(text)));
    case Page::Of::kV3Document:
      break;
  }
  const bool is_custom = std::ranges::any_of(registry_.all(), [&](const Resource& row) {
    return row.custom != nullptr && document_path(row.group, row.version) == page.path;
  });
  auto& documents = is_custom ? custom_ : built_in_;
  return &documents.insert_or_assign(page.path, hashed(std::move(text))).first->second;
}

const OpenApi::Document* OpenApi::make(const Page& page, SliceBudget& budget) {
  if (const Document* there = find(page)) return there;
  if (page.of == Page::Of::kV2Protobuf) return keep(page, make_v2_protobuf());
  if (page.of == Page::Of::kV3Index) return know_hashes(budget) ? keep(page, make_index()) : nullptr;
  auto making = making_.find(page);
  if (making == making_.end()) making = making_.emplace(page, begin(page)).first;
  if (!advance(page, *making->second, budget) || !join(page, *making->second, budget)) return nullptr;
  std::string text = std::move(making->second->text);
  making_.erase(making);
  return keep(page, std::move(text));
}

const OpenApi::Document* OpenApi::whole(const Page& page) {
  if (!has(page)) return nullptr;
  while (true) {
    SliceBudget budget;
    if (const Document* made = make(page, budget)) return made;
  }
}

std::unique_ptr<OpenApi::Making> OpenApi::begin(const Page& page) const {
  const bool is_v2 = page.of == Page::Of::kV2Json;
  auto making = std::make_unique<Making>(is_v2 ? OpenApiVersion::kV2 : OpenApiVersion::kV3);
  if (is_v2 && remote_ != nullptr) making->merge = OpenApiMerge(remote_->remote_schemas());
  for (const Resource& row : registry_.all()) {
    if (is_v2 || document_path(row.group, row.version) == page.path) making->rows.push_back(&row);
  }
  return making;
}

/// Makes the waiting schemas, then the next row. The rows are those of the present table: forget_others() is called
/// first.
bool OpenApi::advance(const Page& page, Making& making, SliceBudget& budget) const {
  if (making.is_joined) return true;
  while (true) {
    while (auto one = making.schemas.next()) {
      std::string text = api::to_text(one->second);
      const std::size_t cost = 2 * text.size();
      making.texts.insert_or_assign(std::move(one->first), std::move(text));
      if (!budget.take(cost)) return false;
    }
    if (making.next_row == making.rows.size()) break;
    const Resource& row = *making.rows[making.next_row++];
    const Json reference = making.schemas.reference(row);
    if (page.of == Page::Of::kV3Document) add_paths(row, reference, making.paths);
  }
  making.is_joined = true;
  making.text = page.of == Page::Of::kV2Json ? R"({"definitions":{)" : R"({"components":{"schemas":{)";
  return true;
}

/// Members of objects are sorted, as in the text of a whole document.
bool OpenApi::join(const Page& page, Making& making, SliceBudget& budget) const {
  if (page.of == Page::Of::kV2Json) return join_v2(making, budget);
  if (!move_members(making.texts, making.text, budget)) return false;
  const Json rest = Json::object({{"info", Json::object({{"title", kTitle}, {"version", version_}})},
                                  {"openapi", "3.0.0"},
                                  {"paths", std::move(making.paths)}});
  making.text += "}},";
  making.text += api::to_text(rest).substr(1);
  making.text += '\n';
  return true;
}

/// Parameters and paths are those of other servers.
bool OpenApi::join_v2(Making& making, SliceBudget& budget) const {
  if (!making.is_after_definitions) {
    if (!making.merge.advance(making.texts, budget) || !move_members(making.texts, making.text, budget)) return false;
    const Json info = Json::object({{"title", kTitle}, {"version", version_}});
    making.text += fmt::format(R"(}},"info":{},"parameters":{{)", api::to_text(info));
    making.is_after_definitions = true;
  }
  if (!move_members(making.merge.parameters(), making.text, budget)) return false;
  if (!making.is_after_parameters) making.text += R"(},"paths":{)";
  making.is_after_parameters = true;
  if (!move_members(making.merge.paths(), making.text, budget)) return false;
  making.text += R"(},"swagger":"2.0"})";
  making.text += '\n';
  return true;
}

/// Documents of built-in groups are made for their hashes, one in a slice.
bool OpenApi::know_hashes(SliceBudget& budget) {
  for (const Resource& row : registry_.all()) {
    const std::string path = document_path(row.group, row.version);
    if (row.custom != nullptr || built_in_hashes_.contains(path)) continue;
    if (!budget.take(kSliceCost)) return false;
    static_cast<void>(hash_of(path, row));
  }
  return true;
}

/// The hash of a path's document: for custom kinds computed from their definitions, for built-in ones from the
/// document, which is made once for it and kept only after a request.
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
  add_remote_kinds(definitions);
  return open_api_v2_protobuf(kTitle, version_, definitions);
}

/// Adds the kinds of other servers without their fields; a name that is there already stays. The document is made in
/// one piece, so those beyond the bound are left out.
void OpenApi::add_remote_kinds(Json& definitions) const {
  constexpr std::size_t kKindsMax = 2'000;
  if (remote_ == nullptr) return;
  std::size_t added = 0;
  for (const RemoteSchemasPtr& source : remote_->remote_schemas()) {
    for (const auto& [name, own] : source->definitions) {
      added += own.kinds.size();
      if (own.kinds.empty() || added > kKindsMax) continue;
      Json& definition = definitions[name];
      if (!definition.is_null()) continue;
      Json::Array kinds;
      for (const std::string& kind : own.kinds) kinds.push_back(api::parse_json(kind).value_or(Json::object()));
      definition = Json::object({{"description", own.description.empty() ? name : own.description},
                                 {"type", "object"},
                                 {kGroupVersionKind, std::move(kinds)}});
    }
  }
}

/// Drops documents made from an older table of resources, and v2 made from older definitions of other servers.
void OpenApi::forget_others() {
  const std::uint64_t remote = remote_ != nullptr ? remote_->schemas_version() : 0;
  if (std::exchange(remote_schemas_, remote) != remote) {
    v2_json_.reset();
    v2_protobuf_.reset();
    making_.erase(Page{.of = Page::Of::kV2Json});
  }
  if (std::exchange(generation_, registry_.generation()) == registry_.generation()) return;
  custom_.clear();
  index_.reset();
  v2_json_.reset();
  v2_protobuf_.reset();
  making_.clear();
}

}  // namespace spillway::apiserver
