// Renews the node's lease every quarter of its duration: the control plane's sign that the node is alive.
// Thread: loop.
// Bounds: one request in flight, five tries per run, back-off to 7 s.
// Source: Kubernetes docs, "Leases", node heartbeats; KEP-589; spec "Node agent", 8; vectors node-agent/lease_timeline.
#pragma once

#include "agent/contract/context.h"
#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "base/rng.h"

#include <functional>
#include <optional>

namespace spillway::agent {

class LeaseEngine {
 public:
  LeaseEngine(AgentContext& context, Rng rng);

  void start(Now now);

  /// The node exists now. A lease that could not be made for want of its owner is made at once, not a period later.
  void on_node_registered(Now now);

  /// For people and /debug/spillway: no contract.
  api::Json state(Now now) const;

  /// Called for every failed write of a run but the first: connections may be dead without a sign.
  void when_failing_repeatedly(std::function<void()> listener) { on_repeated_failure_ = std::move(listener); }

 private:
  /// `lease` as the server has it; null: its creation was put off, for want of the node's uid.
  struct EnsuredLease {
    api::DocumentPtr lease;
    bool created = false;
  };

  using Ensured = std::function<void(EnsuredLease ensured, Now now)>;
  using Written = std::function<void(bool written, Now now)>;

  void run(Now now);
  void update(int attempt, api::DocumentPtr base, Written done, Now now);
  void put(int attempt, api::DocumentPtr base, api::Json lease, Written done);
  void failed(int attempt, api::DocumentPtr base, Written done, Now now);
  void ensure(Duration back_off, Ensured done, Now now);
  void create(Duration back_off, Ensured done, Now now);
  void retry_ensure(Duration back_off, const Error& error, Ensured done, Now now);
  /// The lease to write: renewed, with the node as owner. nullopt: the node's uid is not known.
  void prepare(const api::DocumentPtr& base, std::function<void(std::optional<api::Json>, Now now)> done, Now now);
  void end_run(Now now);

  AgentContext& context_;
  Rng rng_;
  std::string path_;  // the lease's path
  std::function<void()> on_repeated_failure_;
  api::DocumentPtr latest_;  // as the server last returned it; null: not known
  bool again_ = false;       // the node was registered during a run
  std::optional<Instant> renewed_;
  std::optional<client::ApiClient::TimerId> timer_;  // for the next run; none: one is under way
};

}  // namespace spillway::agent
