#include "apiserver/resource/resource_registry.h"

#include "apiserver/resource/custom_kind.h"
#include "base/check.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::apiserver {

namespace {

using enum Verb;

constexpr std::array<std::pair<Verb, std::string_view>, 8> kVerbNames{{{kCreate, "create"},
                                                                       {kDelete, "delete"},
                                                                       {kDeleteCollection, "deletecollection"},
                                                                       {kGet, "get"},
                                                                       {kList, "list"},
                                                                       {kPatch, "patch"},
                                                                       {kUpdate, "update"},
                                                                       {kWatch, "watch"}}};

}  // namespace

std::string_view to_string(Verb verb) {
  return std::ranges::find(kVerbNames, verb, &std::pair<Verb, std::string_view>::first)->second;
}

std::vector<std::string_view> VerbSet::names() const {
  std::vector<std::string_view> names;
  for (const auto& [verb, name] : kVerbNames) {
    if (has(verb)) names.push_back(name);
  }
  return names;
}

std::string Resource::api_version() const {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

const Subresource* Resource::subresource(std::string_view wanted) const {
  const auto found = std::ranges::find(subresources, wanted, &Subresource::name);
  return found == subresources.end() ? nullptr : &*found;
}

bool Resource::is_view() const {
  return view.from_stored != nullptr || (custom != nullptr && custom->converts());
}

api::Json Resource::from_stored(const api::Json& object) const {
  if (custom != nullptr) return custom->from_stored(object);
  return view.from_stored != nullptr ? view.from_stored(object) : object;
}

api::Json Resource::to_stored(const api::Json& object) const {
  if (custom != nullptr) return custom->to_stored(object);
  return view.to_stored != nullptr ? view.to_stored(object) : object;
}

namespace {

/// Rows of custom kinds in the order of discovery: groups by name, the preferred version of each first.
void sort_for_discovery(std::span<const Resource*> rows) {
  std::ranges::sort(rows, [](const Resource* a, const Resource* b) {
    if (a->group != b->group) return a->group < b->group;
    if (a->version != b->version) return is_preferred_version(a->version, b->version);
    return a->plural < b->plural;
  });
}

}  // namespace

ResourceTable::ResourceTable(BuiltIn built_in, std::vector<CustomKindPtr> custom)
    : built_in_(std::move(built_in)), custom_(std::move(custom)) {
  for (const Resource& row : *built_in_) rows_.push_back(&row);
  for (const CustomKindPtr& kind : custom_) {
    for (const Resource& row : kind->rows()) rows_.push_back(&row);
  }
  sort_for_discovery(std::span(rows_).subspan(built_in_->size()));
}

const Resource* ResourceTable::find(std::string_view group, std::string_view version, std::string_view plural) const {
  for (const Resource* row : rows_) {
    if (row->plural == plural && row->group == group && row->version == version) return row;
  }
  return nullptr;
}

ResourceRegistry::ResourceRegistry(std::vector<Resource> built_in)
    : table_(std::make_shared<const ResourceTable>(std::make_shared<const std::vector<Resource>>(std::move(built_in)),
                                                   std::vector<CustomKindPtr>())),
      published_(table_) {}

void ResourceRegistry::replace_custom(std::vector<CustomKindPtr> kinds) {
  table_ = table_->with_custom(std::move(kinds));
  published_.put(table_);
  ++generation_;
}

const Resource* ResourceRegistry::find_kind(std::string_view api_version, std::string_view kind) const {
  for (const Resource& row : all()) {
    if (row.kind == kind && row.api_version() == api_version) return &row;
  }
  return nullptr;
}

const Resource* ResourceRegistry::find_group_kind(std::string_view group, std::string_view kind) const {
  for (const Resource& row : all()) {
    if (row.group == group && row.kind == kind && row.view.from_stored == nullptr) return &row;
  }
  return nullptr;
}

const Resource* ResourceRegistry::find_plural(std::string_view plural_and_group) const {
  const std::size_t dot = plural_and_group.find('.');
  const std::string_view plural = plural_and_group.substr(0, dot);
  const std::string_view group = dot == std::string_view::npos ? std::string_view() : plural_and_group.substr(dot + 1);
  for (const Resource& row : all()) {
    if (row.plural == plural && row.group == group) return &row;
  }
  return nullptr;
}

bool ResourceRegistry::serves(std::string_view group, std::string_view version) const {
  return std::ranges::any_of(all(), [&](const Resource& row) { return row.group == group && row.version == version; });
}

bool ResourceRegistry::serves_group(std::string_view group) const {
  return std::ranges::any_of(all(), [&](const Resource& row) { return row.group == group; });
}

bool ResourceRegistry::is_built_in_group(std::string_view group) const {
  constexpr std::string_view kOwnFolder = "spillway.dev";  // the keys of write/reservations.h
  return group == kOwnFolder ||
         std::ranges::any_of(built_in(), [&](const Resource& row) { return row.group == group; });
}

const Resource& ResourceRegistry::get(std::string_view plural_and_group) const {
  const Resource* found = find_plural(plural_and_group);
  SPILLWAY_CHECK(found != nullptr);
  return *found;
}

}  // namespace spillway::apiserver
