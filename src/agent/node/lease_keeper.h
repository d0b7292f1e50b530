// Renews a node's lease apart from everything else that its agent does: an engine of its own, on a loop that is not the
// agent's, so that a long turn of the agent does not let the lease expire. An agent that is stuck must not look alive:
// the keeper asks the agent's loop for a sign before each run, and renews no more once a sign has been missing for
// kSignWait. The node is then unreachable after the lease's duration, as if its process had ended.
// Thread: loop. Bounds: one request in flight, one question to the agent's loop.
// Source: docs/adr/0074-heartbeats-of-their-own.md.
#pragma once

#include "agent/contract/options.h"
#include "agent/node/lease_engine.h"
#include "client/api_client.h"
#include "client/engine.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

class LeaseKeeper final : public client::ApiEngine {
 public:
  /// The longest wait for a sign of the agent's loop. Longer than any turn of a loop that was seen, even of a machine
  /// without free memory; a third of the time after which a kubelet calls its runtime dead (3 min). A smaller value
  /// evicts the pods of an agent that is only slow; a larger one lets pods of a stuck agent wait longer elsewhere.
  static constexpr Duration kSignWait = minutes(1);

  struct State {
    bool known = false;  // the server has returned the lease
    bool running = false;
    bool withheld = false;  // the agent's loop gives no sign
    std::optional<Instant> renewed;
  };

  /// `ask_for_sign` asks the agent's loop, which answers by on_sign(). `metrics`: null counts nothing.
  LeaseKeeper(const AgentOptions& options, Rng rng, telemetry::Log log, telemetry::Registry* metrics,
              std::function<void()> ask_for_sign);

  std::string_view name() const override { return name_; }

  void start(Now now) override;
  void on_api_event(const client::ApiEvent& event, Now now) override;
  void on_wakeup(Now now) override;
  std::optional<Instant> next_wakeup() const override;
  std::vector<client::ApiCommand> take_api_commands() override;

  /// The node exists now (LeaseEngine::on_node_registered).
  void on_node_registered(Now now);
  /// The agent's loop has run since the sign was requested.
  void on_sign(Now now);

  State state() const;

 private:
  bool may_renew(Now now);

  std::string name_;
  std::string node_name_;
  telemetry::Log log_;
  std::function<void()> ask_for_sign_;
  client::ApiClient client_;
  LeaseEngine lease_;
  telemetry::Counter failures_;
  std::optional<Instant> asked_;  // since when a sign has been missing; nullopt: none is awaited
  bool withheld_ = false;
};

}  // namespace spillway::agent
