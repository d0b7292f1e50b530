// The address at which the agent of a node serves. Thread: any (pure). Source: spec "API server contract", 17.1.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

#include <string>

namespace spillway::apiserver {

struct NodeAddress {
  std::string host;
  int port = 10250;
};

/// InternalIP first, then whatever else can be dialled. kInternalError: the node has no address.
api::StatusResult<NodeAddress> node_address(const api::Json& node);

}  // namespace spillway::apiserver
