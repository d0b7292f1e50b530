// Renews the lease of a node on a loop that is not the node's: an agent with a long turn stays alive for the control
// plane. Thread: the node's loop, except where said. Source: docs/adr/0074-heartbeats-of-their-own.md.
#pragma once

#include "agent/contract/options.h"
#include "agent/node/lease_keeper.h"
#include "api/json/json.h"
#include "client/engine.h"
#include "runtime/loop.h"
#include "runtime/loop_thread.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <functional>
#include <memory>

namespace spillway::apps {

/// The loop on which a lease is renewed, and the way from there to the API server.
struct LeaseRoom {
  std::unique_ptr<runtime::LoopThread> thread;  // null: the loop is the caller's
  runtime::Loop& loop;
  std::unique_ptr<client::Transport> transport;  // used on `loop` only
};

class LeaseRenewal {
 public:
  /// Begins on the room's loop. `own` is the node's loop, which gives the signs of life; both outlive the renewals.
  LeaseRenewal(runtime::Loop& own, LeaseRoom room, const agent::AgentOptions& options, const telemetry::Log& log,
               telemetry::Registry& metrics);
  ~LeaseRenewal();
  LeaseRenewal(const LeaseRenewal&) = delete;
  LeaseRenewal& operator=(const LeaseRenewal&) = delete;

  /// The node has been registered.
  void on_node_registered();
  /// Ends the renewals. `done` runs on the node's loop when nothing of them is at work.
  void stop(runtime::Loop::Task done);

  /// State for people and /debug/spillway: no contract.
  api::Json state(Now now) const;

 private:
  struct AtWork;

  /// Runs `step` on the other loop, unless the renewals have ended by then.
  void post(void (*step)(AtWork& work));

  runtime::Loop& own_;
  std::unique_ptr<runtime::LoopThread> thread_;
  runtime::Loop& loop_;
  std::shared_ptr<const std::function<void()>> give_sign_;  // run by own_ for as long as this object lives
  std::shared_ptr<AtWork> work_;                            // used and destroyed by loop_; null: the renewals end
};

}  // namespace spillway::apps
