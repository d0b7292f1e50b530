#include "apiserver/collect/kubernetes_service.h"

#include "apiserver/collect/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kServiceLabel = "kubernetes.io/service-name";
constexpr std::string_view kManagedBy = "endpointslice.kubernetes.io/managed-by";

bool is_empty_list(const Json* value) {
  return value == nullptr || value->is_null() || (value->if_array() != nullptr && value->if_array()->empty());
}

/// The members that `wanted` has, as it has them; lists whole. An empty list may be absent.
void put(Json& current, const Json& wanted) {
  const Json::Object* members = wanted.if_object();
  if (members == nullptr) {
    current = wanted;
    return;
  }
  for (const auto& [key, value] : *members) {
    if (value.is_array() && is_empty_list(&value) && is_empty_list(std::as_const(current).find(key))) continue;
    put(current[key], value);
  }
}

Json with(Json current, const Json& wanted) {
  put(current, wanted);
  return current;
}

}  // namespace

KubernetesService::KubernetesService(Core& core, Writer& writer)
    : core_(core),
      writer_(writer),
      services_(core.cache.of(core.registry.get("services"))),
      endpoints_(core.cache.of(core.registry.get("endpoints"))),
      slices_(core.cache.of(core.registry.get("endpointslices.discovery.k8s.io"))) {}

void KubernetesService::announce(std::uint16_t port, std::vector<ServingAddress> addresses) {
  std::ranges::sort(addresses);
  const auto same = std::ranges::unique(addresses);
  addresses.erase(same.begin(), same.end());
  if (port == port_ && addresses == addresses_) return;
  port_ = port;
  addresses_ = std::move(addresses);
  is_dirty_ = true;
  run();
}

bool KubernetesService::is_ours(const ResourceCache& cache, const StoredObject& object) const {
  if (object.ns != "default") return false;
  if (&cache == &services_ || &cache == &endpoints_) return object.name == "kubernetes";
  return &cache == &slices_ && object.name.starts_with("kubernetes");
}

void KubernetesService::on_event(const ResourceCache& cache, const EventPtr& event) {
  is_dirty_ = is_dirty_ || is_ours(cache, event->object ? *event->object : *event->previous);
}

std::vector<KubernetesService::Wanted> KubernetesService::wanted() const {
  std::vector<Wanted> all{{&services_, kubernetes_service(port_)}};
  const bool is_told = !addresses_.empty() || endpoints_.find(object_key("default", "kubernetes"));
  if (is_told) all.push_back({&endpoints_, kubernetes_endpoints(addresses_)});
  std::set<std::string, std::less<>> named;
  for (Json& slice : kubernetes_slices(addresses_)) {
    named.emplace(slice.string_at({"metadata", "name"}));
    all.push_back({&slices_, std::move(slice)});
  }
  // Of addresses that have gone the slices stay, empty.
  for (const auto& [key, slice] : slices_.objects()) {
    if (!is_ours(slices_, *slice) || named.contains(slice->name)) continue;
    const Json document = slice->document();
    if (document.string_at({"metadata", "labels", kServiceLabel}) != "kubernetes") continue;
    if (document.at({"metadata", "labels", kManagedBy}) != nullptr) continue;
    all.push_back(
        {&slices_, Json::object({{"metadata", Json::object({{"name", slice->name}})}, {"endpoints", Json::array()}})});
  }
  return all;
}

void KubernetesService::act() {
  if (port_ == 0 || is_writing_ || !is_dirty_) return;
  const std::vector<Wanted> all = wanted();
  is_dirty_ = std::ranges::any_of(all, [this](const Wanted& each) { return mend(each); });
}

bool KubernetesService::mend(const Wanted& wanted) {
  const std::string name(wanted.document.string_at({"metadata", "name"}));
  const ObjectPtr there = wanted.cache->find(object_key("default", name));
  if (there && there->meta.deleting) return false;
  if (there && with(there->document(), wanted.document) == there->document()) return false;
  is_writing_ = true;
  const std::string what = fmt::format("{}/{}", wanted.cache->resource().plural, name);
  auto done = [this, what](const StatusResult<Written>& result) { settle(what, result); };
  if (!there) {
    writer_.create({&wanted.cache->resource(), "default", wanted.document, false, {server_user(), "spillway", false}},
                   std::move(done));
    return true;
  }
  UpdateJob job{
      .resource = &wanted.cache->resource(),
      .ns = "default",
      .name = name,
      .change = [uid = there->meta.uid, document = wanted.document](const Json& current) -> StatusResult<Json> {
        return current.string_at({"metadata", "uid"}) == uid ? with(current, document) : current;
      },
      .trusted = true,
      .context = {server_user(), "spillway", false}};
  writer_.update(std::move(job), std::move(done));
  return true;
}

/// Of several one is mended at a time; the end of each looks at all of them again.
void KubernetesService::settle(const std::string& what, const StatusResult<Written>& result) {
  is_writing_ = false;
  if (result) {
    told_.clear();
    return run();
  }
  std::string problem = what + ": " + result.error().message;
  if (problem != told_)
    core_.log.warning("what leads clients in the cluster to this server cannot be written", {{"error", problem}});
  told_ = std::move(problem);
  is_dirty_ = false;
  core_.timers.at(core_.now.mono + kRetry, [this] {
    is_dirty_ = true;
    run();
  });
}

}  // namespace spillway::apiserver
