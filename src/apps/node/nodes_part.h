// The nodes of a process that has an API server, too, on a loop and thread of their own: however long a turn of a node
// takes, the API server answers its clients, and renews the nodes' leases.
// Thread: the process's loop. Source: docs/adr/0074-heartbeats-of-their-own.md.
#pragma once

#include "agent/serving/node_request.h"
#include "api/exchange/exchange.h"
#include "apps/node/node_part.h"
#include "apps/process/loop_metrics.h"
#include "apps/process/process.h"
#include "apps/server/local_gateway.h"
#include "client/engine.h"
#include "runtime/loop_thread.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace spillway::apps {

class NodesPart final : public Part {
 public:
  /// Ways to the API server of the process, on the process's loop.
  struct Ways {
    std::unique_ptr<client::Transport> agent;
    std::unique_ptr<client::Transport> lease;
  };

  /// Requests to nodes arrive through `gateway`, which must outlive the part.
  NodesPart(Process& process, LocalGateway& gateway);

  /// Starts a node. `started` is called once, unless the process stops before. Errors are those of start_node().
  void start(NodePartOptions options, Ways ways, std::function<void(Outcome)> started);

  /// Calls `answer` with the number of pods that have a cgroup.
  void count_pods(std::function<void(std::size_t)> answer);

  /// Pods of some node outlive this process when it stops.
  bool pods_run_on() const { return pods_run_on_; }

  void prepare_stop() override;
  void stop(runtime::Loop::Task done) override;

 private:
  struct Running;

  /// Answers a request to the server of a node, for which the caller has checked the rights; 503 from one that has
  /// ended.
  void handle(const std::string& node, agent::NodeRequest asked, std::shared_ptr<api::ResponseSink> sink);

  Process& process_;
  LocalGateway& gateway_;
  bool stopping_ = false;
  bool pods_run_on_ = false;
  std::shared_ptr<Running> running_;  // used and emptied on the nodes' loop
  LoopMetrics turns_;                 // metrics of the nodes' loop
  runtime::LoopThread thread_;
};

}  // namespace spillway::apps
