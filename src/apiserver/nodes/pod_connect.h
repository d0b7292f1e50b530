// pods/exec, pods/attach and pods/portforward: finds the node and the container, forwards the request to the agent
// there, and then the connection: bytes after the upgrade are copied unchanged in both directions. Thread: loop.
// Source: spec "Pod lifecycle", 11.4, 11.7.
#pragma once

#include "apiserver/nodes/open_requests.h"
#include "apiserver/ports/node_gateway.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"

namespace spillway::apiserver {

class PodConnect {
 public:
  /// `open`: counts requests to agents; outlives this.
  PodConnect(Core& core, NodeGateway* gateway, OpenRequests& open) : core_(core), gateway_(gateway), open_(open) {}

  void connect(const ExchangePtr& exchange);

 private:
  Core& core_;
  NodeGateway* gateway_;
  OpenRequests& open_;
};

}  // namespace spillway::apiserver
