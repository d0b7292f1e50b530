#include "policy/admission/init_containers.h"

#include <algorithm>

namespace spillway::admission {

bool is_sidecar_container(const api::Container& init_container) {
  return init_container.restart_policy == "Always";
}

bool is_plain_init(const api::Pod& pod, std::string_view container) {
  const auto found = std::ranges::find(pod.spec.init_containers, container, &api::Container::name);
  return found != pod.spec.init_containers.end() && !is_sidecar_container(*found);
}

}  // namespace spillway::admission
