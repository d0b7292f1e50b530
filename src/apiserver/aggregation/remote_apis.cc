#include "apiserver/aggregation/remote_apis.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::apiserver {

namespace {

constexpr std::string_view kOpenGroup = "metrics.k8s.io";

}  // namespace

RemoteApis::RemoteApis(Core& core)
    : core_(core), services_(core.cache.of(core.registry.get("apiservices.apiregistration.k8s.io"))) {}

RemoteApiPtr RemoteApis::find(std::string_view group, std::string_view version) const {
  const auto found = by_name_.find(fmt::format("{}.{}", version, group));
  return found == by_name_.end() ? nullptr : found->second;
}

RemoteApiPtr RemoteApis::find(const api::Target& target) const {
  if (empty()) return nullptr;
  const std::vector<std::string>& at = target.segments;
  if (at.size() >= 3 && at[0] == "apis") return find(at[1], at[2]);
  const bool is_openapi = at.size() == 5 && at[0] == "openapi" && at[1] == "v3" && at[2] == "apis";
  return is_openapi ? find(at[3], at[4]) : nullptr;
}

std::vector<RemoteApiPtr> RemoteApis::all() const {
  std::vector<RemoteApiPtr> all;
  for (const auto& [name, api] : by_name_) all.push_back(api);
  return all;
}

void RemoteApis::load() {
  by_name_.clear();
  for (const auto& [key, object] : services_.objects()) take(*object);
  ++version_;
}

void RemoteApis::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (&cache != &services_) return;
  if (event->object) {
    take(*event->object);
  } else if (event->previous && by_name_.erase(event->previous->name) > 0) {
    ++version_;
  }
}

bool RemoteApis::may_be_remote(std::string_view group) const {
  return !group.empty() && (group == kOpenGroup || !core_.registry.is_built_in_group(group));
}

void RemoteApis::take(const StoredObject& object) {
  std::optional<RemoteApi> api = remote_api(object.document());
  const auto known = by_name_.find(object.name);
  if (!api || !may_be_remote(api->group)) {
    if (known == by_name_.end()) return;
    by_name_.erase(known);
  } else if (known == by_name_.end()) {
    if (by_name_.size() >= kApisMax) {
      return core_.log.warning("an APIService is ignored: there are too many",
                               {{"apiservice", object.name}, {"limit", fmt::to_string(kApisMax)}});
    }
    by_name_.emplace(object.name, std::make_shared<const RemoteApi>(*std::move(api)));
  } else {
    if (*known->second == *api) return;
    known->second = std::make_shared<const RemoteApi>(*std::move(api));
  }
  ++version_;
}

}  // namespace spillway::apiserver
