#include "apiserver/resource/resource_registry.h"

#include "apiserver/resource/resource_rows.h"
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

ResourceRegistry::ResourceRegistry(KindTable hooks) : resources_(resource_rows(hooks)) {}

const Resource* ResourceRegistry::find(std::string_view group, std::string_view version,
                                       std::string_view plural) const {
  for (const Resource& row : resources_) {
    if (row.plural == plural && row.group == group && row.version == version) return &row;
  }
  return nullptr;
}

const Resource* ResourceRegistry::find_kind(std::string_view api_version, std::string_view kind) const {
  for (const Resource& row : resources_) {
    if (row.kind == kind && row.api_version() == api_version) return &row;
  }
  return nullptr;
}

const Resource* ResourceRegistry::find_group_kind(std::string_view group, std::string_view kind) const {
  for (const Resource& row : resources_) {
    if (row.group == group && row.kind == kind && row.view.from_stored == nullptr) return &row;
  }
  return nullptr;
}

const Resource* ResourceRegistry::find_plural(std::string_view plural_and_group) const {
  const std::size_t dot = plural_and_group.find('.');
  const std::string_view plural = plural_and_group.substr(0, dot);
  const std::string_view group = dot == std::string_view::npos ? std::string_view() : plural_and_group.substr(dot + 1);
  for (const Resource& row : resources_) {
    if (row.plural == plural && row.group == group) return &row;
  }
  return nullptr;
}

bool ResourceRegistry::serves(std::string_view group, std::string_view version) const {
  return std::ranges::any_of(resources_,
                             [&](const Resource& row) { return row.group == group && row.version == version; });
}

bool ResourceRegistry::serves_group(std::string_view group) const {
  return std::ranges::any_of(resources_, [&](const Resource& row) { return row.group == group; });
}

const Resource& ResourceRegistry::get(std::string_view plural_and_group) const {
  const Resource* found = find_plural(plural_and_group);
  SPILLWAY_CHECK(found != nullptr);
  return *found;
}

}  // namespace spillway::apiserver
