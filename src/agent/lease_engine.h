// Renews the node's lease every quarter of its duration: what the control plane judges the node's liveness by.
// Thread: loop. Bounds: one request in flight, five tries per run, back-off to 7 s.
// Source: Kubernetes docs, "Leases", node heartbeats; KEP-589; spec "Node agent", 8; vectors node-agent/lease_timeline.
#pragma once

#include "agent/context.h"
#include "api/json.h"
#include "base/rng.h"

#include <functional>
#include <optional>

namespace spillway::agent {

class LeaseEngine {
 public:
  LeaseEngine(AgentContext& context, Rng rng);

  void start(Now now);

 private:
  /// What to do once the lease is known to exist: `found` null if its creation was put off or it was just created.
  using Ensured = std::function<void(std::optional<api::Json> found, Now now)>;

  void run(Now now);
  void update(int attempt, std::optional<api::Json> base, std::function<void(bool written, Now now)> done, Now now);
  void put(int attempt, api::Json lease, std::function<void(bool written, Now now)> done, Now now);
  void ensure(Duration back_off, Ensured done, Now now);
  void create(Duration back_off, Ensured done, Now now);
  void retry_ensure(Duration back_off, const Error& error, Ensured done, Now now);
  /// The lease to write: renewed, with the node as owner. nullopt: the node's uid is not known.
  void prepare(std::optional<api::Json> base, std::function<void(std::optional<api::Json>, Now now)> done, Now now);
  void end_run(Now now);

  AgentContext& context_;
  Rng rng_;
  std::optional<api::Json> latest_;  // as the server last returned it
};

}  // namespace spillway::agent
