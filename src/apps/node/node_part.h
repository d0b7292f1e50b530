// One node of this machine as a part of a process. Thread: the loop of its site.
#pragma once

#include "apps/node/running_node.h"
#include "apps/process/process.h"
#include "client/engine.h"
#include "host/kubelet_endpoint.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace spillway::apps {

class NodePart final : public Part {
 public:
  /// Errors are those of start_node().
  static Result<std::unique_ptr<NodePart>> create(const NodeSite& site, const NodePartOptions& options,
                                                  std::unique_ptr<client::Transport> transport, LeaseRoom lease);

  /// A node whose pods end with it reports that it is not ready: the next process with these objects need not wait for
  /// missed heartbeats. A node whose pods keep running does not, as its pods are still as the API shows them.
  void prepare_stop() override;
  void stop(runtime::Loop::Task done) override;

  /// Null: the node has ended.
  host::KubeletEndpoint* endpoint() { return node_->endpoint.get(); }

  const std::string& name() const { return node_->name; }

  /// True if its pods outlive this process.
  bool pods_run_on() const { return keeps_pods_ && node_->slice->options().leftovers == host::Leftovers::kKeep; }

  /// Pods that have a cgroup.
  std::size_t pods() const { return node_->runtime ? node_->runtime->pods().size() : 0; }

 private:
  NodePart(const NodeSite& site, std::unique_ptr<RunningNode> node, bool keeps_pods)
      : site_(site), node_(std::move(node)), keeps_pods_(keeps_pods) {}

  void stop_now(runtime::Loop::Task done);
  void end_pods(const std::shared_ptr<runtime::Loop::Task>& done);
  void on_reported();
  void end_server(const std::shared_ptr<runtime::Loop::Task>& done);

  NodeSite site_;
  std::unique_ptr<RunningNode> node_;
  bool keeps_pods_;
  bool reporting_ = false;             // prepare_stop() has requested a last report, which is not written yet
  runtime::Loop::Task when_reported_;  // empty: no caller waits
};

}  // namespace spillway::apps
