#include "apiserver/request/discovery.h"

#include "api/text/base64.h"
#include "base/followed_version.h"
#include "base/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

template <typename Texts>
Json strings(const Texts& texts) {
  Json::Array out;
  for (const auto& text : texts) out.emplace_back(std::string(text));
  return out;
}

Json group_version(std::string_view group, std::string_view version) {
  return Json::object({{"groupVersion", std::string(group) + "/" + std::string(version)}, {"version", version}});
}

/// A hash of the form in which objects are stored, for clients that migrate them; upstream's, computed of kinds alone.
/// A view has the hash of the kind that it shows.
std::string storage_version_hash(const Resource& stored) {
  constexpr std::size_t kHashBytes = 8;
  const Sha256 digest = sha256(fmt::format("{}/{}/{}", stored.group, stored.version, stored.kind));
  return api::encode_base64({reinterpret_cast<const char*>(digest.data()), kHashBytes});
}

Json resource_row(const Resource& resource, const Resource& stored) {
  Json row = Json::object({{"name", resource.plural},
                           {"singularName", resource.singular},
                           {"namespaced", resource.namespaced()},
                           {"kind", resource.kind},
                           {"verbs", strings(resource.verbs.names())}});
  if (!resource.short_names.empty()) row["shortNames"] = strings(resource.short_names);
  if (!resource.categories.empty()) row["categories"] = strings(resource.categories);
  if (resource.stored()) row["storageVersionHash"] = storage_version_hash(stored);
  return row;
}

Json subresource_row(const Resource& resource, const Subresource& sub) {
  Json row = Json::object({{"name", std::string(resource.plural) + "/" + std::string(sub.name)},
                           {"singularName", ""},
                           {"namespaced", resource.namespaced()},
                           {"kind", sub.kind.empty() ? resource.kind : sub.kind},
                           {"verbs", strings(sub.verbs.names())}});
  if (!sub.kind.empty() && sub.group != resource.group) {
    row["group"] = sub.group;
    row["version"] = sub.version;
  }
  return row;
}

Json response_kind(std::string_view group, std::string_view version, std::string_view kind) {
  return Json::object({{"group", group}, {"version", version}, {"kind", kind}});
}

Json aggregated_resource(const Resource& resource) {
  Json row = Json::object({{"resource", resource.plural},
                           {"responseKind", response_kind(resource.group, resource.version, resource.kind)},
                           {"scope", resource.namespaced() ? "Namespaced" : "Cluster"},
                           {"singularResource", resource.singular},
                           {"verbs", strings(resource.verbs.names())}});
  if (!resource.short_names.empty()) row["shortNames"] = strings(resource.short_names);
  if (!resource.categories.empty()) row["categories"] = strings(resource.categories);
  Json::Array subresources;
  for (const Subresource& sub : resource.subresources) {
    const bool own = sub.kind.empty();
    subresources.push_back(
        Json::object({{"subresource", sub.name},
                      {"responseKind", own ? response_kind(resource.group, resource.version, resource.kind)
                                           : response_kind(sub.group, sub.version, sub.kind)},
                      {"verbs", strings(sub.verbs.names())}}));
  }
  if (!subresources.empty()) row["subresources"] = std::move(subresources);
  return row;
}

const Json::Array& list_in(const Json& object, std::string_view member) {
  static const Json::Array kNothing;
  const Json* found = object.find(member);
  const Json::Array* list = found == nullptr ? nullptr : found->if_array();
  return list == nullptr ? kNothing : *list;
}

/// The kind in a row of an APIResourceList, whose group and version are the list's unless it names others.
Json kind_in(const RemoteVersion& remote, const Json& row) {
  const std::string_view group = row.string_at({"group"});
  const std::string_view version = row.string_at({"version"});
  return response_kind(group.empty() ? std::string_view(remote.group) : group,
                       version.empty() ? std::string_view(remote.version) : version, row.string_at({"kind"}));
}

/// The resources of an APIResourceList in the form of aggregated discovery.
Json::Array aggregated_resources(const RemoteVersion& remote) {
  Json::Array shown;
  for (const Json& row : list_in(Json::object({{"resources", remote.resources}}), "resources")) {
    const std::string_view name = row.string_at({"name"});
    const std::size_t slash = name.find('/');
    if (slash != std::string_view::npos) {
      const std::string_view parent = name.substr(0, slash);
      const auto found =
          std::ranges::find_if(shown, [&](const Json& one) { return one.string_at({"resource"}) == parent; });
      if (found == shown.end()) continue;
      Json part = Json::object({{"subresource", name.substr(slash + 1)},
                                {"responseKind", kind_in(remote, row)},
                                {"verbs", Json(list_in(row, "verbs"))}});
      Json& parts = (*found)["subresources"];
      if (!parts.is_array()) parts = Json::array();
      parts.if_array()->push_back(std::move(part));
      continue;
    }
    const Json* namespaced = row.find("namespaced");
    Json one = Json::object(
        {{"resource", name},
         {"responseKind", kind_in(remote, row)},
         {"scope", namespaced != nullptr && namespaced->if_bool().value_or(false) ? "Namespaced" : "Cluster"},
         {"singularResource", row.string_at({"singularName"})},
         {"verbs", Json(list_in(row, "verbs"))}});
    for (const std::string_view member : {"shortNames", "categories"}) {
      if (!list_in(row, member).empty()) one[member] = Json(list_in(row, member));
    }
    shown.push_back(std::move(one));
  }
  return shown;
}

}  // namespace

const Resource& Discovery::stored_as(const Resource& row) const {
  if (!row.is_view()) return row;
  for (const Resource& other : registry_.all()) {
    if (other.storage == row.storage && !other.is_view()) return other;
  }
  return row;
}

std::vector<Discovery::Group> Discovery::local_groups() const {
  std::vector<Group> groups;
  for (const Resource& row : registry_.all()) {
    if (row.group.empty()) continue;
    auto group = std::ranges::find(groups, row.group, &Group::name);
    if (group == groups.end()) group = groups.insert(group, Group{.name = row.group, .versions = {}});
    if (std::ranges::find(group->versions, row.version, &Version::name) == group->versions.end()) {
      group->versions.push_back({.name = row.version});
    }
  }
  return groups;
}

/// All groups by priority, as upstream; groups of equal priority by name, versions in the order of the table. The group
/// of APIServices is first.
std::vector<Discovery::Group> Discovery::all_groups() const {
  std::vector<Group> groups = local_groups();
  if (remote_ == nullptr) return groups;
  for (Group& group : groups) {
    std::ranges::stable_sort(group.versions, std::ranges::greater{},
                             [&](const Version& version) { return priority_of(group, version); });
  }
  std::ranges::sort(groups, [this](const Group& a, const Group& b) {
    const std::int64_t one = priority_of(a);
    const std::int64_t other = priority_of(b);
    return one != other ? one > other : a.name < b.name;
  });
  for (const RemoteVersion& remote : remote_->remote_versions()) insert(groups, remote);
  return groups;
}

std::int64_t Discovery::priority_of(const Group& group, const Version& version) const {
  return version.remote != nullptr ? version.remote->version_priority
                                   : remote_->local_version_priority(group.name, version.name);
}

/// The largest priority of the group's versions.
std::int64_t Discovery::priority_of(const Group& group) const {
  std::int64_t largest = 0;
  for (const Version& version : group.versions) {
    largest = std::max(largest, version.remote != nullptr ? version.remote->group_priority
                                                          : remote_->local_group_priority(group.name, version.name));
  }
  return largest;
}

/// Behind the groups, or versions, of the same priority and before those of a smaller one.
void Discovery::insert(std::vector<Group>& groups, const RemoteVersion& remote) const {
  auto group = std::ranges::find(groups, remote.group, &Group::name);
  if (group == groups.end()) {
    group = std::ranges::find_if(groups, [&](const Group& one) { return priority_of(one) < remote.group_priority; });
    groups.insert(group, Group{.name = remote.group, .versions = {{.name = remote.version, .remote = &remote}}});
    return;
  }
  std::vector<Version>& versions = group->versions;
  std::erase_if(versions, [&](const Version& one) { return one.name == remote.version; });
  const auto place = std::ranges::find_if(
      versions, [&](const Version& one) { return priority_of(*group, one) < remote.version_priority; });
  versions.insert(place, {.name = remote.version, .remote = &remote});
}

Json Discovery::core_versions() const {
  return Json::object(
      {{"kind", "APIVersions"}, {"versions", Json::array({"v1"})}, {"serverAddressByClientCIDRs", Json::array({})}});
}

Json Discovery::group_document(const Group& group) {
  Json::Array versions;
  for (const Version& version : group.versions) versions.push_back(group_version(group.name, version.name));
  Json preferred = versions.front();
  return Json::object(
      {{"name", group.name}, {"versions", std::move(versions)}, {"preferredVersion", std::move(preferred)}});
}

Json Discovery::groups() const {
  Json::Array groups;
  for (const Group& group : all_groups()) groups.push_back(group_document(group));
  return Json::object({{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}});
}

std::optional<Json> Discovery::group(std::string_view name) const {
  const std::vector<Group> groups = all_groups();
  const auto found = std::ranges::find(groups, name, &Group::name);
  if (found == groups.end()) return std::nullopt;
  Json document = group_document(*found);
  document["kind"] = "APIGroup";
  document["apiVersion"] = "v1";
  return document;
}

std::optional<Json> Discovery::resources(std::string_view group, std::string_view version) const {
  if (!registry_.serves(group, version)) return std::nullopt;
  Json::Array rows;
  for (const Resource& row : registry_.all()) {
    if (row.group != group || row.version != version) continue;
    rows.push_back(resource_row(row, stored_as(row)));
    for (const Subresource& sub : row.subresources) rows.push_back(subresource_row(row, sub));
  }
  const std::string name = group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
  Json list = Json::object({{"kind", "APIResourceList"}, {"groupVersion", name}, {"resources", std::move(rows)}});
  if (!group.empty()) list["apiVersion"] = "v1";  // as upstream, whose list of the core group has none
  return list;
}

Json Discovery::aggregated_version(std::string_view group, const Version& version) const {
  Json::Array resources;
  if (version.remote != nullptr) {
    resources = aggregated_resources(*version.remote);
  } else {
    for (const Resource& row : registry_.all()) {
      if (row.group == group && row.version == version.name) resources.push_back(aggregated_resource(row));
    }
  }
  const bool is_stale = version.remote != nullptr && !version.remote->is_fresh;
  Json shown = Json::object({{"version", version.name}, {"freshness", is_stale ? "Stale" : "Current"}});
  if (!resources.empty()) shown["resources"] = std::move(resources);
  return shown;
}

Json Discovery::aggregated(bool core) const {
  Json::Array items;
  const std::vector<Group> groups =
      core ? std::vector<Group>{{.name = "", .versions = {{.name = "v1"}}}} : all_groups();
  for (const Group& group : groups) {
    Json::Array shown;
    for (const Version& one : group.versions) shown.push_back(aggregated_version(group.name, one));
    Json metadata = Json::object();
    if (!core) metadata["name"] = group.name;
    items.push_back(Json::object({{"metadata", std::move(metadata)}, {"versions", std::move(shown)}}));
  }
  return Json::object({{"kind", "APIGroupDiscoveryList"},
                       {"apiVersion", "apidiscovery.k8s.io/v2"},
                       {"metadata", Json::object()},
                       {"items", std::move(items)}});
}

Json version_document(std::string_view spillway_version) {
  return Json::object({{"major", "1"},
                       {"minor", std::to_string(kFollowedMinor)},
                       {"emulationMajor", "1"},
                       {"emulationMinor", std::to_string(kFollowedMinor)},
                       {"minCompatibilityMajor", "1"},
                       {"minCompatibilityMinor", std::to_string(kFollowedMinor - 1)},
                       {"gitVersion", fmt::format("{}-spillway.{}", kFollowedVersion, spillway_version)},
                       {"gitCommit", ""},
                       {"gitTreeState", "clean"},
                       {"buildDate", "1970-01-01T00:00:00Z"},
                       {"goVersion", "none"},
                       {"compiler", "g++"},
                       {"platform", "linux/amd64"}});
}

}  // namespace spillway::apiserver
