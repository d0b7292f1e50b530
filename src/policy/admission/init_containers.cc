#include "policy/admission/init_containers.h"

#include <algorithm>

namespace spillway::admission {

bool is_plain_init(const api::Pod& pod, std::string_view container) {
  const auto found = std::ranges::find(pod.spec.init_containers, container, &api::Container::name);
  return found != pod.spec.init_containers.end() && !api::is_sidecar(*found);
}

}  // namespace spillway::admission
