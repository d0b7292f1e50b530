// The gateway of an API server to the nodes of its own process; others are called over the network.
// Thread: loop.
#pragma once

#include "agent/serving/node_request.h"
#include "apiserver/ports/node_gateway.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace spillway::apps {

class LocalGateway final : public apiserver::NodeGateway {
 public:
  /// Answers a request, now or later.
  using Handle = std::function<void(agent::NodeRequest asked, std::shared_ptr<api::ResponseSink> sink)>;

  /// `handle` answers for the node until remove_all().
  void add(const std::string& node, Handle handle) { nodes_[node] = std::move(handle); }

  /// The nodes of this process have ended.
  void remove_all() { nodes_.clear(); }

  /// The gateway for nodes that are not here; null: they cannot be reached.
  void set_remote(apiserver::NodeGateway* remote) { remote_ = remote; }

  void open(const std::string& node, const std::string& host, int port, api::Request request,
            std::shared_ptr<api::ResponseSink> sink) override;

 private:
  std::map<std::string, Handle> nodes_;
  apiserver::NodeGateway* remote_ = nullptr;
};

}  // namespace spillway::apps
