#include "apiserver/kinds/pod/token_volume.h"

#include "apiserver/kinds/fields/fields.h"
#include "base/rng.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::string_view kPrefix = "kube-api-access-";
constexpr std::string_view kPlace = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::int64_t kTokenSeconds = 3'607;  // recognizable; agents renew it before an hour has passed
constexpr std::int64_t kTokenVolumeMode = 0644;

bool is_there(const api::Json& container) {
  return std::ranges::any_of(elements(container, "volumeMounts"),
                             [](const api::Json& mount) { return text(mount, "mountPath") == kPlace; });
}

/// The suffix of a volume's name, in the form of generated names.
std::string suffix_of(std::string_view uid) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::uint64_t left = fnv1a64(uid);
  std::string suffix;
  for (int i = 0; i < 5; ++i, left /= kLetters.size()) suffix += kLetters[left % kLetters.size()];
  return suffix;
}

api::Json token_volume(const std::string& name) {
  using api::Json;
  Json token = Json::object({{"expirationSeconds", kTokenSeconds}, {"path", "token"}});
  Json authority = Json::object(
      {{"name", "kube-root-ca.crt"}, {"items", Json::array({Json::object({{"key", "ca.crt"}, {"path", "ca.crt"}})})}});
  Json field = Json::object({{"apiVersion", "v1"}, {"fieldPath", "metadata.namespace"}});
  Json downward =
      Json::object({{"items", Json::array({Json::object({{"path", "namespace"}, {"fieldRef", std::move(field)}})})}});
  Json sources = Json::array({Json::object({{"serviceAccountToken", std::move(token)}}),
                              Json::object({{"configMap", std::move(authority)}}),
                              Json::object({{"downwardAPI", std::move(downward)}})});
  return Json::object(
      {{"name", name},
       {"projected", Json::object({{"sources", std::move(sources)}, {"defaultMode", kTokenVolumeMode}})}});
}

}  // namespace

bool wants_token_volume(const api::Json& pod, const api::Json& account) {
  const api::Json& spec = value_of(pod, "spec");
  const api::Json& said = has(spec, "automountServiceAccountToken") ? spec : account;
  const api::Json* wish = said.find("automountServiceAccountToken");
  return wish == nullptr || wish->if_bool().value_or(true);
}

void add_token_volume(api::Json& pod) {
  api::Json& spec = pod["spec"];
  std::string name;
  for (const api::Json& volume : elements(std::as_const(spec), "volumes"))
    if (name.empty() && text(volume, "name").starts_with(kPrefix)) name = text(volume, "name");
  const bool given = !name.empty();
  if (!given) name = fmt::format("{}{}", kPrefix, suffix_of(pod.string_at({"metadata", "uid"})));
  bool mounted = false;
  for (const std::string_view list : {"initContainers", "containers"}) {
    api::Json* containers = spec.find(list);
    if (containers == nullptr || containers->if_array() == nullptr) continue;
    for (api::Json& container : *containers->if_array()) {
      if (!container.is_object() || is_there(container)) continue;
      api::Json& mounts = container["volumeMounts"];
      if (!mounts.is_array()) mounts = api::Json::array();
      mounts.if_array()->push_back(api::Json::object({{"name", name}, {"readOnly", true}, {"mountPath", kPlace}}));
      mounted = true;
    }
  }
  if (!mounted || given) return;
  api::Json& volumes = spec["volumes"];
  if (!volumes.is_array()) volumes = api::Json::array();
  volumes.if_array()->push_back(token_volume(name));
}

}  // namespace spillway::apiserver::kinds
