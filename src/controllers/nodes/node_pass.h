// One pass of the node lifecycle controller over the nodes that are due, as a list of steps. There is one list for each
// lifecycle::PassOrder, and the constructor chooses between them.
// Thread: loop. Bounds: one read of a lease and one status write per node. Source: spec "Node lifecycle", S5, S6.
#pragma once

#include "api/json/json.h"
#include "api/object/node.h"
#include "base/error.h"
#include "base/time.h"
#include "controllers/shared/step_run.h"
#include "policy/lifecycle/node_health.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::controllers {

class NodeLifecycleController;

enum class NodePassStep : std::uint8_t {
  kLeases,    // read the leases of nodes that seem to have fallen silent, and wait for the answers
  kCount,     // count the nodes in their zones, as they are now
  kZones,     // evaluate the zones
  kActs,      // write statuses; the decisions about a node follow when its status is written
  kStatuses,  // write statuses, and wait for the answers
  kFollow,    // count the nodes, and decide about each, with the results of the writes
  kEnd,
};

class NodePass final : public StepRun<NodePass, NodePassStep> {
 public:
  using NodePtr = std::shared_ptr<const api::Node>;
  using Step = NodePassStep;

  /// `controller` must outlive the pass.
  explicit NodePass(NodeLifecycleController& controller);

  /// Assesses the nodes, which are in name order, and runs the steps.
  void start(const std::vector<const api::Node*>& due, Now now);

  /// The status of a node was written, or the node has posted before it could be. False: the pass does not wait for it.
  bool on_status_settled(const NodePtr& node, const lifecycle::Assessment& assessment, Now now);
  /// The status could not be written, or the node is gone: the next pass finds it as it is then.
  void on_status_abandoned(const std::string& name, Now now);

 private:
  struct Seen {
    NodePtr node;
    lifecycle::Assessment assessment;
    bool present = true;  // the node exists at the end of the pass, and its status was written
    bool held = false;    // a brake holds the write back
  };

  Next run(Step step, Now now) override;
  Next read_leases();
  Next on_lease(const std::string& name, const Result<api::Json>& outcome, Now now);
  void assess_by_live_lease(const std::string& name, const Result<api::Json>& outcome, Now now);
  Next count(Now now);
  void assess_anew(Seen& seen, const NodePtr& node, Now now);
  Next evaluate_zones(Now now);
  Next act(Now now);
  Next write_statuses(Now now);
  Next follow_statuses(Now now);

  Seen& find(const std::string& name);

  NodeLifecycleController& controller_;
  std::vector<Seen> nodes_;                                  // in name order
  std::set<std::string> leases_outstanding_;                 // reads that the pass waits for
  std::set<std::string, std::less<>> statuses_outstanding_;  // writes that the pass waits for
};

}  // namespace spillway::controllers
