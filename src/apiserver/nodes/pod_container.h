// Resolves a request about one container: the container's name, and the address of its node's agent. Thread: loop.
// Source: spec "API server contract", 17.1; spec "Pod lifecycle", 11.7.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/nodes/node_address.h"
#include "apiserver/read/core.h"

#include <string>

namespace spillway::apiserver {

/// `wanted`: null or empty if the request names none, which only a pod of one container allows.
api::StatusResult<std::string> pick_container(const api::Json& pod, const std::string* wanted);

struct PodAgent {
  std::string node;
  NodeAddress address;
};

/// The agent of the node that the pod is bound to.
api::StatusResult<PodAgent> agent_of(const Core& core, const api::Json& pod);

Error no_way_to(const std::string& node);

}  // namespace spillway::apiserver
