// Fields behind features that are off in Kubernetes 1.32: its API server drops them from new objects.
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/pod.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 3> kOffInSpec{"hostUsers", "resourceClaims", "resources"};
constexpr std::array<std::string_view, 2> kOffInPodContext{"seLinuxChangePolicy", "supplementalGroupsPolicy"};
constexpr std::array<std::string_view, 3> kLists{"containers", "ephemeralContainers", "initContainers"};

/// Erases only what is there: access to change something copies what is shared.
template <std::size_t count>
void erase_all(api::Json& spec, std::string_view holder, const std::array<std::string_view, count>& names) {
  for (const std::string_view name : names) {
    if (std::as_const(spec).at({holder, name}) != nullptr) spec.erase({holder, name});
  }
}

bool is_image_volume(const api::Json& volume) {
  return has(volume, "image");
}

/// Removes the volumes and what mounts them.
void drop_image_volumes(api::Json& spec) {
  std::set<std::string, std::less<>> names;
  for (const api::Json& volume : elements(std::as_const(spec), "volumes")) {
    if (is_image_volume(volume)) names.insert(std::string(text(volume, "name")));
  }
  if (names.empty()) return;
  api::Json::Array* volumes = elements(spec, "volumes");
  std::erase_if(*volumes, is_image_volume);
  if (volumes->empty()) spec.erase({"volumes"});
  for (const std::string_view list : kLists) {
    api::Json::Array* containers = elements(spec, list);
    if (containers == nullptr) continue;
    for (api::Json& container : *containers) {
      api::Json::Array* mounts = elements(container, "volumeMounts");
      if (mounts == nullptr) continue;
      std::erase_if(*mounts, [&names](const api::Json& mount) { return names.contains(text(mount, "name")); });
      if (mounts->empty()) container.erase({"volumeMounts"});
    }
  }
}

void drop_in_container(api::Json& container) {
  const api::Json& read = container;
  if (has(read, "resizePolicy")) container.erase({"resizePolicy"});
  if (read.at({"resources", "claims"}) != nullptr) container.erase({"resources", "claims"});
  const api::Json* mount = read.at({"securityContext", "procMount"});
  if (mount != nullptr && !mount->is_null() && mount->string_at({}) != "Default") {
    container["securityContext"]["procMount"] = "Default";
  }
}

void drop_trust_bundles(api::Json& spec) {
  api::Json::Array* volumes = elements(spec, "volumes");
  if (volumes == nullptr) return;
  for (api::Json& volume : *volumes) {
    if (std::as_const(volume).at({"projected", "sources"}) == nullptr) continue;
    api::Json::Array* sources = elements(volume["projected"], "sources");
    if (sources == nullptr) continue;
    for (api::Json& source : *sources) source.erase({"clusterTrustBundle"});
  }
}

}  // namespace

void drop_disabled_fields(api::Json& spec) {
  for (const std::string_view name : kOffInSpec) {
    if (std::as_const(spec).find(name) != nullptr) spec.erase({name});
  }
  erase_all(spec, "securityContext", kOffInPodContext);
  drop_image_volumes(spec);
  drop_trust_bundles(spec);
  for (const std::string_view list : kLists) {
    api::Json::Array* containers = elements(spec, list);
    if (containers == nullptr) continue;
    for (api::Json& container : *containers) drop_in_container(container);
  }
}

std::optional<std::string> warn_of_host_users(const api::Json& spec, std::string_view path) {
  const api::Json& host_users = value_of(spec, "hostUsers");
  if (host_users.if_bool().value_or(true)) return std::nullopt;
  return fmt::format(
      "{}.hostUsers: false is dropped, because the feature gate UserNamespacesSupport is off: only a node that gives "
      "every pod a user namespace runs it in one",
      path);
}

std::optional<std::string> warn_of_pod(const api::Json& pod) {
  return warn_of_host_users(value_of(pod, "spec"), "spec");
}

std::optional<std::string> warn_of_template(const api::Json& object) {
  return warn_of_host_users(value_of(value_of(value_of(object, "spec"), "template"), "spec"), "spec.template.spec");
}

}  // namespace spillway::apiserver::kinds
