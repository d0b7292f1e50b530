#include "apiserver/aggregation/remote_discovery.h"

#include "apiserver/aggregation/service_server.h"
#include "apiserver/resource/custom_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr int kServerFault = 500;

/// The resources of a list that a server has sent; anything but objects with a name and a kind is left out.
Json resources_in(const Json& list) {
  Json::Array kept;
  const Json* found = list.find("resources");
  if (found == nullptr || found->if_array() == nullptr) return kept;
  for (const Json& row : *found->if_array()) {
    if (row.string_at({"name"}).empty() || row.string_at({"kind"}).empty()) continue;
    kept.push_back(row);
  }
  return kept;
}

/// The path of the API's own document in the index of a server. Empty: there is none. A server may list only the
/// document of its own group version under that path.
std::string document_path(const RemoteApi& api, const api::Response& answer) {
  const std::string key = fmt::format("apis/{}/{}", api.group, api.version);
  const Result<Json> index = answer.ok() ? api::parse_json(answer.body) : Result<Json>(Error{});
  const std::string_view path = index ? index->string_at({"paths", key, "serverRelativeURL"}) : std::string_view();
  return path.starts_with("/openapi/v3/" + key) ? std::string(path) : std::string();
}

}  // namespace

void RemoteDiscovery::follow() {
  if (followed_ == apis_.version()) return;
  followed_ = apis_.version();
  std::map<std::string, Known, std::less<>> known;
  for (const RemoteApiPtr& api : apis_.all()) {
    Known one;
    if (const auto before = known_.find(api->name); before != known_.end()) {
      // A new object with the old name (another uid) may name another server, so its documents are not reused.
      if (before->second.api->uid == api->uid) one = before->second;
      if (*before->second.api != *api) due_.add(api->name);
    } else {
      due_.add(api->name);
    }
    one.api = api;
    one.is_fresh = one.is_fresh && api->available;
    known.emplace(api->name, std::move(one));
  }
  known_ = std::move(known);
  publish();
  open_api_.follow(apis_.all());
  if (known_.empty()) return;
  if (!std::exchange(is_timed_, true)) core_.timers.at(core_.now.mono + kRefresh, [this] { refresh(); });
  fetch_next();
}

void RemoteDiscovery::refresh() {
  is_timed_ = !known_.empty();
  if (!is_timed_) return;
  core_.timers.at(core_.now.mono + kRefresh, [this] { refresh(); });
  for (const auto& [name, known] : known_) due_.add(name);
  open_api_.refresh();
  fetch_next();
}

void RemoteDiscovery::fetch_next() {
  while (const std::optional<std::string> name = due_.take()) {
    const auto known = known_.find(*name);
    if (known != known_.end() && known->second.api->available) fetch(*name, known->second.api);
  }
}

void RemoteDiscovery::fetch(const std::string& name, const RemoteApiPtr& api) {
  const Result<AggregatedServer> server = server_of(core_, *api);
  if (!server) return;
  due_.begin(name);
  fetch_.get({.server = *server, .target = path_of(*api), .bytes_max = kDocumentBytesMax},
             [this, name, api](const Result<api::Response>& answer) { on_resources(name, api, answer); });
}

void RemoteDiscovery::on_resources(const std::string& name, const RemoteApiPtr& api,
                                   const Result<api::Response>& answer) {
  const auto known = known_.find(name);
  const Result<Json> list = answer && answer->ok() ? api::parse_json(answer->body) : Result<Json>(Error{});
  const bool is_current = known != known_.end() && known->second.api->uid == api->uid;
  if (is_current && list && list->is_object()) {
    known->second.resources = resources_in(*list);
    known->second.is_fresh = true;
  } else if (is_current) {
    known->second.is_fresh = false;
  }
  publish();
  const Result<AggregatedServer> server = server_of(core_, *api);
  if (!is_current || !server) {
    due_.end(name);
    return fetch_next();
  }
  fetch_.get({.server = *server, .target = "/openapi/v3", .bytes_max = kDocumentBytesMax},
             [this, name, api](const Result<api::Response>& index) { on_openapi(name, api, index); });
}

void RemoteDiscovery::on_openapi(const std::string& name, const RemoteApiPtr& api,
                                 const Result<api::Response>& answer) {
  due_.end(name);
  const auto known = known_.find(name);
  if (known != known_.end() && known->second.api->uid == api->uid) {
    // The document that is known stays while its server fails.
    if (answer && answer->status < kServerFault) known->second.openapi_path = document_path(*api, *answer);
    publish();
  }
  fetch_next();
}

std::vector<RemoteSchemasPtr> RemoteDiscovery::remote_schemas() const {
  std::vector<RemoteSchemasPtr> all;
  for (const RemoteVersion& version : versions_) {
    RemoteSchemasPtr schemas = open_api_.find(fmt::format("{}.{}", version.version, version.group));
    if (schemas != nullptr) all.push_back(std::move(schemas));
  }
  return all;
}

void RemoteDiscovery::publish() {
  versions_.clear();
  for (const auto& [name, known] : known_) {
    versions_.push_back({.group = known.api->group,
                         .version = known.api->version,
                         .group_priority = known.api->group_priority,
                         .version_priority = known.api->version_priority,
                         .is_fresh = known.is_fresh,
                         .resources = known.resources,
                         .openapi_path = known.openapi_path});
  }
  std::ranges::sort(versions_, [](const RemoteVersion& a, const RemoteVersion& b) {
    if (a.group_priority != b.group_priority) return a.group_priority > b.group_priority;
    if (a.group != b.group) return a.group < b.group;
    if (a.version_priority != b.version_priority) return a.version_priority > b.version_priority;
    return is_preferred_version(a.version, b.version);
  });
}

}  // namespace spillway::apiserver
