#include "apiserver/collect/kubernetes_service.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

/// Members of the spec that are restored. Members of another type, or a selector, would lead clients elsewhere, and are
/// removed.
constexpr std::array<std::string_view, 8> kSpecMembers{
    "clusterIP",      "clusterIPs", "internalTrafficPolicy", "ipFamilies",
    "ipFamilyPolicy", "ports",      "sessionAffinity",       "type"};

}  // namespace

KubernetesService::KubernetesService(Core& core, Writer& writer)
    : KeptObjects(core, writer, "clients in the cluster"),
      services_(cache_of("services")),
      endpoints_(cache_of("endpoints")),
      slices_(cache_of("endpointslices.discovery.k8s.io")) {}

void KubernetesService::announce(std::uint16_t port, std::vector<ServingAddress> addresses) {
  std::ranges::sort(addresses);
  const auto same = std::ranges::unique(addresses);
  addresses.erase(same.begin(), same.end());
  if (port == port_ && addresses == addresses_) return;
  port_ = port;
  addresses_ = std::move(addresses);
  requeue();
}

bool KubernetesService::concerns(const ResourceCache& cache, const StoredObject& object) const {
  if (object.ns != "default") return false;
  if (&cache == &services_ || &cache == &endpoints_) return object.name == "kubernetes";
  return &cache == &slices_ && object.name.starts_with("kubernetes");
}

std::vector<KeptObjects::Wanted> KubernetesService::wanted() const {
  if (port_ == 0) return {};
  std::vector<Json> addressed = kubernetes_slices(addresses_);
  std::vector<Wanted> all;
  all.reserve(addressed.size() + 2);
  all.push_back({&services_, kubernetes_service(port_), kSpecMembers});
  const ObjectPtr endpoints = endpoints_.find(object_key("default", "kubernetes"));
  if (!addresses_.empty() || (endpoints && is_kept(endpoints->document())))
    all.push_back({&endpoints_, kubernetes_endpoints(addresses_)});
  std::set<std::string, std::less<>> named;
  for (Json& slice : addressed) {
    named.emplace(slice.string_at({"metadata", "name"}));
    all.push_back({&slices_, std::move(slice)});
  }
  // Slices that have lost all addresses stay, empty.
  for (const auto& [key, slice] : slices_.objects()) {
    if (!concerns(slices_, *slice) || named.contains(slice->name)) continue;
    const Json document = slice->document();
    if (!is_kept(document)) continue;
    all.push_back(
        {&slices_, Json::object({{"metadata", Json::object({{"name", slice->name}, {"namespace", "default"}})},
                                 {"endpoints", Json::array()}})});
  }
  return all;
}

}  // namespace spillway::apiserver
