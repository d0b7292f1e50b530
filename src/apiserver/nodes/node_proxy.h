// GET nodes/NAME/proxy/PATH: asked of the node's agent, whose answer goes to the client as it is.
// Thread: loop. Source: Kubernetes API reference, NodeProxyOptions.
#pragma once

#include "apiserver/ports/node_gateway.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"

namespace spillway::apiserver {

class NodeProxy {
 public:
  /// `gateway` may be null: then no node can be reached.
  NodeProxy(Core& core, NodeGateway* gateway) : core_(core), gateway_(gateway) {}

  void get(const ExchangePtr& exchange);

 private:
  Core& core_;
  NodeGateway* gateway_;
};

}  // namespace spillway::apiserver
