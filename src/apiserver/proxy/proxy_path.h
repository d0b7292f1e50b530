// nodes/NAME/proxy, pods/NAME/proxy and services/NAME/proxy: the request is forwarded to the node's agent, or to a
// server in a pod, and the answer returned. The server is chosen from the objects when the request is executed. Thread:
// loop. Bounds: requests of one user that are open to pods, besides those of the gateway.
// Source: Kubernetes API reference, NodeProxyOptions, PodProxyOptions, ServiceProxyOptions.
#pragma once

#include "apiserver/nodes/open_requests.h"
#include "apiserver/ports/node_gateway.h"
#include "apiserver/ports/pod_gateway.h"
#include "apiserver/proxy/pod_server.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"

#include <cstddef>
#include <string_view>

namespace spillway::apiserver {

class ProxyPath {
 public:
  struct Ways {
    NodeGateway* nodes = nullptr;           // null: no node can be reached
    PodGateway* pods = nullptr;             // null: no pod can be reached
    std::string_view scheme = "https";      // the server's, as clients use it
    std::size_t open_of_user_max = 32;      // to pods and services
    OpenRequests* open_to_nodes = nullptr;  // counts requests to nodes; null: they are not counted
  };

  ProxyPath(Core& core, const Ways& ways) : core_(core), ways_(ways), open_to_pods_(ways.open_of_user_max) {}

  void perform(const ExchangePtr& exchange);

 private:
  void ask_node(const ExchangePtr& exchange);
  api::StatusResult<PodServer> pod_of(const Route& route) const;
  api::StatusResult<PodServer> endpoint_of(const Route& route);
  void ask_server(const ExchangePtr& exchange, const PodServer& server);

  Core& core_;
  const Ways ways_;
  OpenRequests open_to_pods_;
};

}  // namespace spillway::apiserver
