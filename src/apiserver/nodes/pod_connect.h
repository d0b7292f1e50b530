// pods/exec, pods/attach and pods/portforward: finds the node and the container, hands the request to the agent there,
// and the connection with it: what agent and client say to each other after the upgrade is passed on as it is.
// Thread: loop. Source: spec "Pod lifecycle", 11.4, 11.7.
#pragma once

#include "apiserver/ports/node_gateway.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"

namespace spillway::apiserver {

class PodConnect {
 public:
  PodConnect(Core& core, NodeGateway* gateway) : core_(core), gateway_(gateway) {}

  void connect(const ExchangePtr& exchange);

 private:
  Core& core_;
  NodeGateway* gateway_;
};

}  // namespace spillway::apiserver
