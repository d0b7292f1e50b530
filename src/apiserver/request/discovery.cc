#include "apiserver/request/discovery.h"

#include "api/text/base64.h"
#include "base/sha256.h"

#include <algorithm>
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

/// In which form objects are stored, for clients that move them to another; upstream's, of kinds alone. A view is
/// stored as what it shows.
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

}  // namespace

const Resource& Discovery::stored_as(const Resource& row) const {
  if (!row.is_view()) return row;
  for (const Resource& other : registry_.all()) {
    if (other.storage == row.storage && !other.is_view()) return other;
  }
  return row;
}

std::vector<std::string_view> Discovery::group_names() const {
  std::vector<std::string_view> names;
  for (const Resource& row : registry_.all()) {
    if (!row.group.empty() && std::ranges::find(names, row.group) == names.end()) names.push_back(row.group);
  }
  return names;
}

Json Discovery::core_versions() const {
  return Json::object(
      {{"kind", "APIVersions"}, {"versions", Json::array({"v1"})}, {"serverAddressByClientCIDRs", Json::array({})}});
}

Json Discovery::group_document(std::string_view name) const {
  Json::Array versions;
  for (const Resource& row : registry_.all()) {
    if (row.group != name) continue;
    Json version = group_version(name, row.version);
    if (std::ranges::find(versions, version) == versions.end()) versions.push_back(std::move(version));
  }
  Json preferred = versions.front();
  return Json::object({{"name", name}, {"versions", std::move(versions)}, {"preferredVersion", std::move(preferred)}});
}

Json Discovery::groups() const {
  Json::Array groups;
  for (const std::string_view name : group_names()) groups.push_back(group_document(name));
  return Json::object({{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}});
}

std::optional<Json> Discovery::group(std::string_view name) const {
  if (name.empty() || !registry_.serves_group(name)) return std::nullopt;
  Json document = group_document(name);
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

Json Discovery::aggregated(bool core, std::string_view version) const {
  Json::Array items;
  const std::vector<std::string_view> names = core ? std::vector<std::string_view>{""} : group_names();
  for (const std::string_view name : names) {
    std::vector<std::pair<std::string_view, Json::Array>> versions;
    for (const Resource& row : registry_.all()) {
      if (row.group != name) continue;
      auto found = std::ranges::find(versions, row.version, &std::pair<std::string_view, Json::Array>::first);
      if (found == versions.end()) found = versions.emplace(versions.end(), row.version, Json::Array());
      found->second.push_back(aggregated_resource(row));
    }
    Json::Array shown;
    for (auto& [number, resources] : versions) {
      shown.push_back(
          Json::object({{"version", number}, {"freshness", "Current"}, {"resources", std::move(resources)}}));
    }
    Json metadata = Json::object();
    if (!core) metadata["name"] = name;
    items.push_back(Json::object({{"metadata", std::move(metadata)}, {"versions", std::move(shown)}}));
  }
  return Json::object({{"kind", "APIGroupDiscoveryList"},
                       {"apiVersion", "apidiscovery.k8s.io/" + std::string(version)},
                       {"metadata", Json::object()},
                       {"items", std::move(items)}});
}

Json version_document(std::string_view spillway_version) {
  return Json::object({{"major", "1"},
                       {"minor", "32"},
                       {"gitVersion", "v1.32.0-spillway." + std::string(spillway_version)},
                       {"gitCommit", ""},
                       {"gitTreeState", "clean"},
                       {"buildDate", "1970-01-01T00:00:00Z"},
                       {"goVersion", "none"},
                       {"compiler", "g++"},
                       {"platform", "linux/amd64"}});
}

}  // namespace spillway::apiserver
