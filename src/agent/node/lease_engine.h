// Renews the node's lease every quarter of its duration: the control plane's sign that the node is alive.
// Thread: loop.
// Bounds: one request in flight, five tries per run, back-off to 7 s.
// Source: Kubernetes docs, "Leases", node heartbeats; KEP-589; spec "Node agent", 8; vectors node-agent/lease_timeline.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "base/rng.h"
#include "client/api_client.h"
#include "telemetry/log.h"

#include <functional>
#include <optional>
#include <string>

namespace spillway::agent {

class LeaseEngine {
 public:
  struct Settings {
    std::string node_name;
    Duration lease_duration;  // a lease is renewed every quarter of it
    std::string query;        // added to every request: "?timeout=10s"
  };

  /// `heartbeats` and `log` must outlive the engine.
  LeaseEngine(Settings settings, client::ApiClient& heartbeats, const telemetry::Log& log, Rng rng);

  void start(Now now);

  /// Calls `may_renew` before each run and each write. While it returns false no lease is written, and it is called
  /// again every kPutOff. Before start().
  void renew_only_if(std::function<bool(Now)> may_renew) { may_renew_ = std::move(may_renew); }

  /// The time between two calls of `may_renew`.
  static constexpr Duration kPutOff = seconds(1);

  /// Called once the node exists. A lease that waited for its owner is created at once.
  void on_node_registered(Now now);

  /// State for people and /debug/spillway: no contract.
  api::Json state(Now now) const;

  /// The server has returned the lease.
  bool is_known() const { return latest_ != nullptr; }

  bool is_running() const { return !timer_; }

  /// The last renewal that the server has answered.
  std::optional<Instant> renewed() const { return renewed_; }

  /// Called for every failed write of a run but the first: connections may be dead without a sign.
  void when_failing_repeatedly(std::function<void()> listener) { on_repeated_failure_ = std::move(listener); }

 private:
  /// `lease` as the server has it; null: its creation was put off, because the node's uid is unknown.
  struct EnsuredLease {
    api::DocumentPtr lease;
    bool created = false;
  };

  enum class Write { kUpdate, kCreate };

  /// The run under way.
  struct Run {
    api::DocumentPtr base;  // the lease that is renewed
    api::Json lease;        // the lease to write
    Write write = Write::kUpdate;
    int attempt = 0;         // updates tried from the same base
    bool ensures = false;    // the run reads or creates the lease first: it is unknown, or its update failed
    bool conflicts = false;  // the last update ended in a conflict: the lease is read again
    Duration back_off{};     // before the lease is read again
  };

  // The steps of a run, in order. An update that fails goes back to the one before; a conflict and an unknown lease
  // lead to ensure(), which ends in an update again.
  void run(Now now);
  void try_update(Now now);
  void prepare(const api::DocumentPtr& base, Now now);
  void on_owner(const Result<api::Json>& outcome, Now now);
  void write(Now now);
  void on_put(Result<api::Json> outcome, Now now);
  void failed(Now now);
  void on_updated(bool written, Now now);
  void ensure(Duration back_off);
  void on_found(Result<api::Json> outcome, Now now);
  void on_created(Result<api::Json> outcome, Now now);
  void retry_ensure(const Error& error, Now now);
  void on_ensured(EnsuredLease ensured, Now now);
  void end_run(Now now);

  void arm(Instant due);
  api::Json new_lease() const;

  bool may_renew(Now now) const { return !may_renew_ || may_renew_(now); }

  Settings settings_;
  client::ApiClient& heartbeats_;
  const telemetry::Log& log_;
  Rng rng_;
  std::string path_;                    // the lease's path
  std::function<bool(Now)> may_renew_;  // empty: always
  std::function<void()> on_repeated_failure_;
  api::DocumentPtr latest_;  // as the server last returned it; null: unknown
  Run run_;
  bool again_ = false;  // the node was registered during a run
  std::optional<Instant> renewed_;
  std::optional<client::ApiClient::TimerId> timer_;  // for the next run; none: one is under way
};

}  // namespace spillway::agent
