// Current usage of nodes and pods, as measured by their agents: fetched on request and cached for a while. Thread:
// loop. Bounds: nodes asked at a time, bytes of an answer, one sample per node of the cluster. Source: spec "API server
// contract", 18; "Node agent", 10.
#pragma once

#include "api/object/meta.h"
#include "apiserver/ports/node_gateway.h"
#include "apiserver/read/core.h"
#include "base/alive.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

struct Usage {
  WallTime time;
  std::uint64_t nano_cores = 0;
  std::uint64_t memory_bytes = 0;  // working set
};

struct ContainerUsage {
  std::string name;
  Usage usage;
};

/// The measurements of one agent's answer. Absent values were not measured.
struct NodeUsage {
  std::optional<Usage> node;
  std::map<std::string, std::vector<ContainerUsage>> pods;  // by uid
};

/// Reads a Summary document. A pod of which a container was not measured whole is left out: half a sum misleads.
NodeUsage parse_summary_usage(const api::Json& summary);

class UsageCollector {
 public:
  static constexpr Duration kFreshFor = seconds(10);
  static constexpr Duration kPatience = seconds(5);
  static constexpr std::size_t kAskedMax = 64;
  static constexpr std::size_t kAnswerBytesMax = std::size_t{16} * 1024 * 1024;

  UsageCollector(Core& core, NodeGateway* gateway) : core_(core), gateway_(gateway) {}

  /// Calls `ready` once, now or later: when each of these nodes has answered within the last kFreshFor, or after
  /// kPatience. find() then returns what has arrived.
  void collect(const std::set<std::string>& nodes, std::function<void()> ready);

  /// nullptr: the node has not answered lately.
  const NodeUsage* find(const std::string& node) const;

 private:
  class AnswerSink;

  /// One collect() that waits for agents.
  struct Gathering {
    std::size_t missing = 0;
    std::function<void()> ready;
    std::optional<TimerQueue::Id> timer;
  };

  struct Sample {
    Instant asked;
    std::optional<NodeUsage> usage;  // nullopt: no answer, or an invalid one
  };

  bool is_fresh(const std::string& node) const;
  void ask_next();
  void ask(const std::string& node);
  void on_answer(const std::string& node, Instant asked, const std::optional<api::Response>& answer);
  void finish(Gathering& gathering);

  Core& core_;
  NodeGateway* gateway_;
  std::map<std::string, Sample> samples_;
  std::map<std::string, std::vector<std::shared_ptr<Gathering>>> wanted_;  // by node that is, or will be, queried
  std::deque<std::string> queue_;
  std::size_t asked_ = 0;
  Alive alive_;
};

}  // namespace spillway::apiserver
