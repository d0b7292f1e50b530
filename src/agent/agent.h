// A node agent: registers the node, reports its status, renews its lease, admits and runs pods, and evicts them under
// pressure. An engine: events in, commands out, no I/O. The driver executes take_api_commands() and
// take_host_commands() after every step.
// Thread: loop. Invariants: one eviction at a time; a journal entry precedes every eviction; a terminal pod phase is
// reported only when no process of the pod is left.
// Source: Kubernetes docs, "Nodes", "Node-pressure Eviction", "Pod Lifecycle"; spec "Node agent".
#pragma once

#include "agent/contract/held_resources.h"
#include "agent/contract/journal.h"
#include "agent/contract/options.h"
#include "agent/contract/ports.h"
#include "agent/contract/sinks.h"
#include "agent/contract/static_manifests.h"
#include "agent/devices/resource_managers.h"
#include "agent/eviction/reaction.h"
#include "api/json/json.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "api/object/summary.h"
#include "base/rng.h"
#include "client/engine.h"
#include "policy/eviction/conditions.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

/// Bound of Agent::report_stop(): a stop does not wait longer for an API server that does not answer.
inline constexpr Duration kLastReportWait = seconds(2);

class Agent final : public client::ApiEngine {
 public:
  /// `history`: the journal of earlier instances on this node; evictions found in it are finished, not repeated.
  /// `checkpoints`: what the last SaveDevices and SaveCheckpoints of earlier instances wrote.
  /// kInvalid: an eviction threshold or reservation that cannot be.
  static Result<std::unique_ptr<Agent>> create(AgentOptions options, MachineInfo machine, Rng rng, AgentSinks sinks,
                                               std::span<const JournalEntry> history = {},
                                               const Checkpoints& checkpoints = {});
  ~Agent() override;

  /// Lets another engine (LeaseKeeper) renew the lease. `on_registered` is called when the node has been
  /// registered. Before start().
  void renew_lease_elsewhere(std::function<void()> on_registered);

  /// Receives this node's object and its pods as the API server has them, after the agent has taken each change.
  struct ObjectListener {
    std::function<void(const std::shared_ptr<const api::Node>& node)> on_node;  // null: deleted
    std::function<void(const std::shared_ptr<const api::Pod>& before, const std::shared_ptr<const api::Pod>& after)>
        on_pod;  // `before` null: the pod is new; `after` null: it is deleted
  };

  /// Called inside a step of the agent: a listener that ends the agent does so later. Before start().
  void listen(ObjectListener listener);

  std::string_view name() const override;
  void start(Now now) override;
  void on_api_event(const client::ApiEvent& event, Now now) override;
  void on_wakeup(Now now) override;
  std::optional<Instant> next_wakeup() const override;
  std::vector<client::ApiCommand> take_api_commands() override;

  void on_host_event(const HostEvent& event, Now now);
  /// The same event, shared: an observation is kept without a copy.
  void on_host_event(const std::shared_ptr<const HostEvent>& event, Now now);
  /// Commands since the last call, in order.
  std::vector<HostCommand> take_host_commands();
  /// The manifests of options().static_pod_path or static_pod_url: called after the start and after every change.
  void on_manifests(const StaticManifests& read, Now now);

  /// The parts of the node that containers hold for themselves: containers and sidecars of pods that have not ended.
  std::vector<PodParts> held_parts() const;
  /// The parts of the node that pods can hold, held or not.
  HeldParts allocatable_parts() const;
  void on_device_event(const DeviceEvent& event, Now now);
  /// Commands since the last call, in order.
  std::vector<DeviceCommand> take_device_commands();

  /// Called when the machine shuts down: ends the pods by their priority, refuses new ones and reports the node not
  /// ready. `done` is called when all pods have ended or their time is over. False: no shutdownGracePeriod is
  /// configured, and nothing happens.
  bool shut_down(std::function<void(Now)> done, Now now);
  /// The process ends its pods and itself: the node is reported not ready, in the words of a node that shuts down.
  /// `done` is called once, when that is written or cannot be written, after kLastReportWait at the latest.
  void report_stop(std::function<void(Now)> done, Now now);

  const AgentOptions& options() const;
  /// The node object exists and its status has been written by this instance.
  bool registered() const;
  /// Seconds from start() to the registration; nullopt: not registered yet.
  std::optional<double> registration_seconds() const;
  /// Pressure conditions the node reports.
  eviction::ConditionSet conditions() const;
  /// The last whole observation; null before the first.
  std::shared_ptr<const api::Summary> last_summary() const;
  /// Decisions taken so far and the present state (agent/contract/decision_log.h).
  api::Json decisions(Now now) const;
  /// The state of every part, for people and for /debug/spillway: no contract.
  api::Json state(Now now) const;
  /// All pods of the agent, in namespace/name order, with the status to report.
  std::vector<api::Pod> pods() const;

 private:
  struct Parts;
  explicit Agent(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace spillway::agent
