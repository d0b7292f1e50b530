// Registers the node and keeps its status reported: at once when something changed, else every five minutes; liveness
// is the lease's business. A deleted node is registered anew; with Registration::kNone the engine waits for another
// component to create it.
// Thread: loop. Bounds: one request in flight; five tries per sync.
// Source: Kubernetes docs, "Nodes", self-registration, heartbeats; spec "Node agent", 2-7.
#pragma once

#include "agent/contract/context.h"
#include "agent/node/node_object.h"
#include "agent/node/node_registration.h"
#include "api/json/json.h"
#include "api/object/node.h"
#include "base/rng.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace spillway::agent {

class NodeStatusEngine {
 public:
  /// `cached`: the informer's copy of the own node, or null. `facts`: what is true now.
  NodeStatusEngine(AgentContext& context, Rng rng, std::function<std::shared_ptr<const api::Node>()> cached,
                   std::function<NodeFacts()> facts);

  void start(Now now);
  /// Requests a report now, because something that the status shows has changed.
  void report_soon(Now now);
  /// The process is about to end: reports what has changed, then calls `done` once, also when the report failed or the
  /// node is not registered. It may take as long as the API server does: the caller sets the limit.
  void report_last(std::function<void(Now)> done, Now now);
  /// The informer saw the node change: restores the conditions of ours that another client changed.
  void on_node(const api::Node& node, Now now);
  /// The informer reports that the node was deleted.
  void on_node_deleted(Now now);

  /// Called for every failed try of a report but the first: connections may be dead without a sign.
  void when_failing_repeatedly(std::function<void()> listener) { on_repeated_failure_ = std::move(listener); }

  /// Called each time the node has been registered, or found to be.
  void when_registered(std::function<void(Now now)> listener) { on_registered_ = std::move(listener); }

  /// State for people and /debug/spillway: no contract. `status`: "absent" (waiting for it), "registering", "idle" or
  /// "syncing".
  api::Json state(Now now) const;

  /// True if the node exists, as far as the agent knows.
  bool registered() const { return state_ == State::kIdle || state_ == State::kSyncing; }

 private:
  using NodePtr = std::shared_ptr<const api::Node>;

  /// The inputs of a sync that found nothing to report, nor anything wrong.
  struct SyncInputs {
    NodePtr node;
    NodeFacts facts;
    std::string runtime_version;
  };

  enum class State { kAbsent, kRegistering, kIdle, kSyncing };

  std::string_view status() const;
  /// The node does not exist, as far as the agent knows: registers it, or waits for it.
  void begin(Now now);
  void await_node(Now now);
  void get_node();
  void on_awaited(const Result<api::Json>& outcome, Now now);
  api::Node node_to_register(Now now) const;
  void on_registered(Now now);
  void sync(Now now);
  /// True if nothing has changed since a sync that found nothing to report.
  bool is_quiet(const NodePtr& cached, Now now) const;
  bool is_due(Now now) const;
  void try_update(int attempt, const NodePtr& base, Now now);
  void try_live(int attempt, Now now);
  void on_live(int attempt, const Result<api::Json>& outcome, Now now);
  void patch(int attempt, const api::Node& base, const api::Node& wanted);
  void on_patched(int attempt, const Result<api::Json>& outcome, Now now);
  void failed(int attempt, const Error& error, Now now);
  void end_sync(Now now);
  void arm(Instant due);
  void record(const std::vector<NodeEvent>& events, Now now) const;
  void record_schedulability(const api::Node& node, Now now);
  StatusUpdate update(api::Node& node, Now now) const;
  std::string path(std::string_view subresource = {}) const;
  std::string heartbeat_path(std::string_view subresource = {}) const;

  AgentContext& context_;
  Rng rng_;
  std::function<std::shared_ptr<const api::Node>()> cached_;
  std::function<NodeFacts()> facts_;
  std::function<void()> on_repeated_failure_;
  std::function<void(Now)> on_registered_;
  std::function<void(Now)> on_last_report_;  // empty: none is wanted
  State state_ = State::kAbsent;
  bool again_ = false;          // report_soon() was called during a sync
  bool unschedulable_ = false;  // as last seen
  std::optional<SyncInputs> quiet_;
  NodeRegistration registration_;
  std::optional<Instant> last_report_;
  std::optional<client::ApiClient::TimerId> timer_;
};

}  // namespace spillway::agent
