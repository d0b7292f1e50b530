// pods/log: finds the node and the container, hands the request to the agent there, streams its answer on.
// Thread: loop. Source: spec "API server contract", 17.1.
#pragma once

#include "apiserver/nodes/open_requests.h"
#include "apiserver/ports/node_gateway.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"

namespace spillway::apiserver {

class PodLog {
 public:
  /// `open`: counts requests to agents; outlives this.
  PodLog(Core& core, NodeGateway* gateway, OpenRequests& open) : core_(core), gateway_(gateway), open_(open) {}

  void get(const ExchangePtr& exchange);

 private:
  Core& core_;
  NodeGateway* gateway_;
  OpenRequests& open_;
};

}  // namespace spillway::apiserver
