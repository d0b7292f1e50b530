#include "controllers/node_responses.h"

#include "controllers/nodes/legacy/original_tainter.h"
#include "controllers/nodes/legacy/timeout_response.h"
#include "controllers/nodes/node_tainter.h"

#include <utility>

namespace spillway::controllers {

std::unique_ptr<NodeResponse> make_node_response(NodeResponse::Parts parts) {
  if (parts.profile.mode == lifecycle::EvictionMode::kLegacy) {
    return std::make_unique<TimeoutResponse>(std::move(parts));
  }
  if (parts.profile.facts.checks_kubelet_version) return std::make_unique<OriginalTainter>(std::move(parts));
  return std::make_unique<NodeTainter>(std::move(parts));
}

}  // namespace spillway::controllers
