#include "apiserver/store_overrides.h"

#include "apiserver/kinds/kind_rows.h"
#include "apiserver/resource/resource_registry.h"
#include "base/edit_distance.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

namespace spillway::apiserver {

namespace {

/// Objects of these kinds decide who has which rights, or whether objects of other kinds are valid: two stores would
/// have to agree on them.
constexpr std::array<std::string_view, 28> kStay{"/limitranges",
                                                 "/namespaces",
                                                 "/nodes",
                                                 "/persistentvolumeclaims",
                                                 "/persistentvolumes",
                                                 "/pods",
                                                 "/resourcequotas",
                                                 "/secrets",
                                                 "/serviceaccounts",
                                                 "/services",
                                                 "admissionregistration.k8s.io/mutatingwebhookconfigurations",
                                                 "admissionregistration.k8s.io/validatingadmissionpolicies",
                                                 "admissionregistration.k8s.io/validatingadmissionpolicybindings",
                                                 "admissionregistration.k8s.io/validatingwebhookconfigurations",
                                                 "certificates.k8s.io/certificatesigningrequests",
                                                 "flowcontrol.apiserver.k8s.io/flowschemas",
                                                 "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
                                                 "networking.k8s.io/ingressclasses",
                                                 "networking.k8s.io/ipaddresses",
                                                 "node.k8s.io/runtimeclasses",
                                                 "policy/poddisruptionbudgets",
                                                 "rbac.authorization.k8s.io/clusterrolebindings",
                                                 "rbac.authorization.k8s.io/clusterroles",
                                                 "rbac.authorization.k8s.io/rolebindings",
                                                 "rbac.authorization.k8s.io/roles",
                                                 "scheduling.k8s.io/priorityclasses",
                                                 "storage.k8s.io/storageclasses",
                                                 "storage.k8s.io/volumeattachments"};

template <typename... Args>
Error refuse_override(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kInvalid, fmt::format(format, std::forward<Args>(args)...), std::string(kOverridesFlag)};
}

std::string overridable_name(const Resource& resource) {
  return fmt::format("{}/{}", resource.group, resource.plural);
}

bool is_stored_form(const Resource& resource) {
  return resource.stored() && resource.view.from_stored == nullptr;
}

/// " (did you mean X?)", or nothing. The same resource of another group is meant before one of a similar name.
std::string meant_instead(const ResourceRegistry& registry, std::string_view asked) {
  const std::string_view plural = asked.substr(asked.rfind('/') + 1);
  std::size_t best = std::numeric_limits<std::size_t>::max();
  std::string found;
  for (const Resource& resource : registry.all()) {
    if (!is_stored_form(resource)) continue;
    const std::string name = overridable_name(resource);
    const std::size_t whole = edit_distance(asked, name);
    const std::size_t last = edit_distance(plural, resource.plural);
    const bool near = whole <= name.size() / 3 || last <= resource.plural.size() / 4;
    if (!near || last * 100 + whole >= best) continue;
    best = last * 100 + whole;
    found = fmt::format(" (did you mean {}?)", name);
  }
  return found;
}

Result<const Resource*> find_overridden(const ResourceRegistry& registry, const std::string& asked) {
  const Resource* view = nullptr;
  for (const Resource& resource : registry.all()) {
    if (overridable_name(resource) != asked) continue;
    if (is_stored_form(resource)) return &resource;
    view = &resource;
  }
  if (view == nullptr) return refuse_override("unknown resource \"{}\"{}", asked, meant_instead(registry, asked));
  if (!view->stored()) return refuse_override("{}: nothing of it is stored", asked);
  for (const Resource& resource : registry.all()) {
    if (is_stored_form(resource) && resource.storage == view->storage) {
      return refuse_override("{} are the objects of {}: name that", asked, overridable_name(resource));
    }
  }
  return refuse_override("unknown resource \"{}\"", asked);
}

std::set<std::string> url_set(const std::vector<std::string>& servers) {
  std::set<std::string> urls;
  for (std::string url : servers) {
    if (url.ends_with('/')) url.pop_back();
    urls.insert(std::move(url));
  }
  return urls;
}

const std::string* shared_url(const std::set<std::string>& one, const std::set<std::string>& other) {
  const auto found = std::ranges::find_if(one, [&](const std::string& url) { return other.contains(url); });
  return found == one.end() ? nullptr : &*found;
}

StorePlan plan_of(std::vector<std::string> servers, const std::map<std::string, const Resource*>& resources) {
  StorePlan plan{.servers = std::move(servers), .resources = {}, .storages = {}, .name = {}};
  for (const auto& [name, resource] : resources) {
    plan.resources.push_back(name);
    plan.storages.push_back(resource->storage);
    if (!plan.name.empty()) plan.name += ',';
    plan.name += resource->plural;
    if (!resource->group.empty()) plan.name += fmt::format(".{}", resource->group);
  }
  return plan;
}

}  // namespace

Result<std::vector<StorePlan>> plan_stores(const std::vector<std::string>& main_servers,
                                           const std::vector<StoreOverride>& overrides) {
  const ResourceRegistry registry(kinds::kind_rows());
  const std::set<std::string> main = url_set(main_servers);
  std::set<std::string> seen;
  std::vector<std::vector<std::string>> servers;  // endpoints of each store, as first given
  std::map<std::set<std::string>, std::map<std::string, const Resource*>> stores;
  for (const StoreOverride& asked : overrides) {
    SPILLWAY_TRY(resource, find_overridden(registry, asked.resource));
    if (std::ranges::find(kStay, asked.resource) != kStay.end()) {
      return refuse_override(
          "{}: other requests are authorized by its objects, so they stay in the etcd of --etcd-servers",
          asked.resource);
    }
    if (!seen.insert(asked.resource).second) return refuse_override("{} is given twice", asked.resource);
    const std::set<std::string> urls = url_set(asked.servers);
    if (const std::string* url = shared_url(urls, main)) {
      return refuse_override("{}: {} is one of --etcd-servers, where it lives without an override", asked.resource,
                             *url);
    }
    for (const auto& [others, resources] : stores) {
      const std::string* url = others == urls ? nullptr : shared_url(urls, others);
      if (url == nullptr) continue;
      return refuse_override("{}: {} is also a server of {}: name the same servers for both", asked.resource, *url,
                             resources.begin()->first);
    }
    const auto [store, is_new] = stores.try_emplace(urls);
    if (is_new) servers.push_back(asked.servers);
    store->second.emplace(asked.resource, resource);
  }
  std::vector<StorePlan> plans;
  for (std::vector<std::string>& each : servers) plans.push_back(plan_of(each, stores.at(url_set(each))));
  return plans;
}

}  // namespace spillway::apiserver
