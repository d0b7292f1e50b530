// Fields behind features that are off in Kubernetes 1.36, and those of dynamic resource allocation: dropped from new
// objects.
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/pod.h"

#include <array>
#include <string_view>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 1> kOffInSpec{"resourceClaims"};
constexpr std::array<std::string_view, 3> kLists{"containers", "ephemeralContainers", "initContainers"};

// Only existing members are erased: mutable access copies what is shared.

/// A lifecycle with nothing but a signal is dropped whole.
void drop_stop_signal(api::Json& container) {
  if (std::as_const(container).at({"lifecycle", "stopSignal"}) == nullptr) return;
  container.erase({"lifecycle", "stopSignal"});
  const api::Json::Object* rest = value_of(std::as_const(container), "lifecycle").if_object();
  if (rest != nullptr && rest->empty()) container.erase({"lifecycle"});
}

void drop_in_container(api::Json& container) {
  if (std::as_const(container).at({"resources", "claims"}) != nullptr) container.erase({"resources", "claims"});
  drop_stop_signal(container);
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
  drop_trust_bundles(spec);
  for (const std::string_view list : kLists) {
    api::Json::Array* containers = elements(spec, list);
    if (containers == nullptr) continue;
    for (api::Json& container : *containers) drop_in_container(container);
  }
}

}  // namespace spillway::apiserver::kinds
