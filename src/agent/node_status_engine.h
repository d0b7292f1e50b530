// Registers the node and keeps its status reported: at once when something changed, else every five minutes; liveness
// is the lease's business.
// Thread: loop. Bounds: one request in flight; registration backs off to 7 s; five tries per sync.
// Source: Kubernetes docs, "Nodes", self-registration, heartbeats; spec "Node agent", 2-7.
#pragma once

#include "agent/context.h"
#include "agent/node_object.h"
#include "api/node.h"
#include "base/rng.h"

#include <functional>
#include <optional>

namespace spillway::agent {

class NodeStatusEngine {
 public:
  /// `cached`: the informer's copy of the own node, or null. `facts`: what is true now.
  NodeStatusEngine(AgentContext& context, Rng rng, std::function<std::shared_ptr<const api::Node>()> cached,
                   std::function<NodeFacts()> facts);

  void start(Now now);
  /// Something that shows in the status changed: report it now.
  void report_soon(Now now);
  /// The informer saw the node change: puts right what somebody else wrote into our conditions.
  void on_node(const api::Node& node, Now now);

  bool registered() const { return registered_; }

 private:
  void try_register(Now now);
  void reconcile(const api::Node& initial, Now now);
  void retry_registration(Now now);
  void on_registered(Now now);
  void sync(Now now);
  void try_update(int attempt, const api::Node& base, Now now);
  void try_live(int attempt, Now now);
  void end_sync(Now now);
  void arm(Instant due);
  void record(const std::vector<NodeEvent>& events, Now now);
  std::string path(std::string_view subresource = {}) const;

  AgentContext& context_;
  Rng rng_;
  std::function<std::shared_ptr<const api::Node>()> cached_;
  std::function<NodeFacts()> facts_;
  bool registered_ = false;
  bool syncing_ = false;
  bool again_ = false;  // report_soon() came during a sync
  Duration registration_back_off_ = milliseconds(100);
  std::optional<Instant> last_report_;
  std::optional<client::ApiClient::TimerId> timer_;
};

}  // namespace spillway::agent
