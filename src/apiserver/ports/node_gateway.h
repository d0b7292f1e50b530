// The way from the API server to the agents of nodes. Thread: loop.
#pragma once

#include "api/exchange/exchange.h"

#include <memory>
#include <string>

namespace spillway::apiserver {

/// Port: opens a request to the agent of a node (logs, stats) and streams its answer. Implemented by wire/ and apps/.
class NodeGateway {
 public:
  virtual ~NodeGateway() = default;
  virtual void open(const std::string& node, const std::string& host, int port, api::Request request,
                    std::shared_ptr<api::ResponseSink> sink) = 0;
};

}  // namespace spillway::apiserver
