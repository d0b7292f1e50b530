#include "agent/pod_state/pod_worker.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {

const ContainerRun* PodWorker::find_run(std::string_view container) const {
  for (const auto* list : run_lists()) {
    const auto found =
        std::ranges::find_if(*list, [&](const ContainerRun& run) { return run.spec->name == container; });
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

bool PodWorker::is_ephemeral(const ContainerRun& run) const {
  return std::ranges::any_of(ephemeral_containers, [&](const ContainerRun& each) { return &each == &run; });
}

ContainerRun* PodWorker::find_run(std::string_view container) {
  return const_cast<ContainerRun*>(std::as_const(*this).find_run(container));
}

}  // namespace spillway::agent
