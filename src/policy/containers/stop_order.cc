#include "policy/containers/stop_order.h"

#include <ranges>

namespace spillway::containers {

std::map<std::string, std::vector<std::string>> stop_order(const api::PodSpec& spec,
                                                           const std::set<std::string, std::less<>>& running) {
  std::map<std::string, std::vector<std::string>> order;
  std::vector<std::string> regular;
  for (const auto* list : {&spec.containers, &spec.ephemeral_containers}) {
    for (const api::Container& container : *list) {
      if (!running.contains(container.name)) continue;
      order[container.name];
      if (list == &spec.containers) regular.push_back(container.name);
    }
  }
  std::string later;  // name of the sidecar that follows
  for (const api::Container& container : spec.init_containers | std::views::reverse) {
    const bool serves = api::is_sidecar(container);
    if (running.contains(container.name)) {
      auto& waits_for = order[container.name];
      if (serves) waits_for = regular;
      if (serves && running.contains(later)) waits_for.push_back(later);
    }
    if (serves) later = container.name;
  }
  return order;
}

}  // namespace spillway::containers
