// One node of this machine as a part of a process. Thread: loop.
#pragma once

#include "apps/node/running_node.h"
#include "apps/process/process.h"
#include "client/engine.h"
#include "host/kubelet_endpoint.h"

#include <memory>
#include <string>
#include <utility>

namespace spillway::apps {

class NodePart final : public Part {
 public:
  /// Errors are those of start_node().
  static Result<std::unique_ptr<NodePart>> create(Process& process, const NodePartOptions& options,
                                                  std::unique_ptr<client::Transport> transport);

  void stop(runtime::Loop::Task done) override;

  host::KubeletEndpoint& endpoint() { return *node_->endpoint; }

  const std::string& name() const { return node_->name; }

 private:
  NodePart(Process& process, std::unique_ptr<RunningNode> node, bool leaves_pods)
      : process_(process), node_(std::move(node)), leaves_pods_(leaves_pods) {}

  void stop_now(runtime::Loop::Task done);
  void end_server(const std::shared_ptr<runtime::Loop::Task>& done);

  Process& process_;
  std::unique_ptr<RunningNode> node_;
  bool leaves_pods_;
};

}  // namespace spillway::apps
