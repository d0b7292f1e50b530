// Where an API server finds the nodes of its own process; others are asked over the network.
// Thread: loop.
#pragma once

#include "apiserver/ports/node_gateway.h"
#include "host/kubelet_endpoint.h"

#include <map>
#include <memory>
#include <string>

namespace spillway::apps {

class LocalGateway final : public apiserver::NodeGateway {
 public:
  /// The endpoint must outlive the API server's use of it.
  void add(const std::string& node, host::KubeletEndpoint& endpoint) { endpoints_[node] = &endpoint; }

  /// Asked for nodes that are not here; null: they cannot be reached.
  void set_remote(apiserver::NodeGateway* remote) { remote_ = remote; }

  void open(const std::string& node, const std::string& host, int port, api::Request request,
            std::shared_ptr<api::ResponseSink> sink) override;

 private:
  std::map<std::string, host::KubeletEndpoint*> endpoints_;
  apiserver::NodeGateway* remote_ = nullptr;
};

}  // namespace spillway::apps
