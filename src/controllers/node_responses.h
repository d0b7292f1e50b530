// The choice between the responses to failed nodes: today's, or that of an old Kubernetes line. Thread: loop.
#pragma once

#include "controllers/nodes/node_response.h"

#include <memory>

namespace spillway::controllers {

/// The response that `parts.profile` chooses.
std::unique_ptr<NodeResponse> make_node_response(NodeResponse::Parts parts);

}  // namespace spillway::controllers
