// Gives each node a block of pod addresses of every cluster range, once: spec.podCIDR and spec.podCIDRs. A node that
// has blocks keeps them, and they are occupied here; they are free again when the node is deleted. A node made again
// under the name of another has a uid of its own, and so blocks of its own. Thread: loop. Bounds: one patch per node
// and 30 together in flight; memory for each node. A failed patch is retried with back-off, with the same blocks: the
// result of one without an answer shows in the node. Source: Kubernetes docs, "kube-controller-manager",
// --allocate-node-cidrs; Node API reference, podCIDRs.
#pragma once

#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/shared/shared.h"
#include "policy/addresses/node_ranges.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace spillway::controllers {

class NodeIpam {
 public:
  NodeIpam(Shared shared, addresses::NodeRanges ranges);
  NodeIpam(const NodeIpam&) = delete;
  NodeIpam& operator=(const NodeIpam&) = delete;

  /// The caches are filled.
  void start(Now now);
  void run(Now now);

 private:
  using NodePtr = std::shared_ptr<const api::Node>;
  using Blocks = std::vector<api::IpRange>;

  /// False: at least one of the node's ranges cannot be occupied.
  bool occupy(const api::Node& node);
  void on_node(const NodePtr& before, const NodePtr& after, Now now);
  void release(const std::string& uid, Now now);
  bool assign(const api::Node& node);
  void sync(const std::string& name, Now now);
  void write(const NodePtr& node, Now now);
  void on_written(const NodePtr& node, const Result<api::Json>& outcome, Now now);
  void arm();

  Shared shared_;
  addresses::NodeRanges ranges_;
  bool started_ = false;
  client::WorkQueue queue_{{.retry_min = milliseconds(100), .retry_max = seconds(60)}};
  client::WakeUp wake_up_;
  std::size_t calls_ = 0;
  std::map<std::string, Blocks> blocks_;  // by uid: occupied for the node, whether it shows them yet or not
  std::set<std::string> unserved_;        // names of nodes for which no block was left
};

}  // namespace spillway::controllers
