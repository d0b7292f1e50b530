// An eviction manager beside a kubelet: watches the node and the kubelet's pods and evicts by the kubelet's rules, in
// its place and earlier, or, as a shadow, only reports what it would have done and compares that with the kubelet's
// acts. It registers no node, writes no node status and no lease, and starts nothing. The decisions are those of the
// node's own agent: the same EvictionEngine over other pods.
// Thread: loop. Invariants: a shadow leaves no StopPod and no write of a pod; no eviction while there is a hold.
// Source: design, "Who uses it, and for what"; docs/adr/0007-companion.md.
#pragma once

#include "agent/companion/foreign_pods.h"
#include "agent/companion/kubelet_settings.h"
#include "agent/companion/shadow_ledger.h"
#include "agent/contract/decision_log.h"
#include "agent/contract/journal.h"
#include "agent/contract/options.h"
#include "agent/contract/ports.h"
#include "agent/contract/sinks.h"
#include "agent/eviction/reaction.h"
#include "api/json/json.h"
#include "base/rng.h"
#include "client/engine.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

/// The source of pods: a watch of the API server, or the kubelet's /pods through set_pods().
enum class PodSource { kApiServer, kKubelet };

struct CompanionOptions {
  std::string node_name;
  EvictionOptions eviction;
  Consequence consequence = Consequence::kActs;
  PodSource source = PodSource::kApiServer;
  Duration shadow_window = minutes(1);
  Disks disks = Disks::kLeftToKubelet;
};

class Companion final : public client::ApiEngine {
 public:
  /// `history`: the journal of earlier instances; evictions of the last minutes found in it are finished. A shadow
  /// has no use for a reaction.
  /// kInvalid: a threshold that cannot be.
  static Result<std::unique_ptr<Companion>> create(CompanionOptions options, MachineInfo machine, Rng rng,
                                                   AgentSinks sinks, std::span<const JournalEntry> history = {});
  ~Companion() override;

  std::string_view name() const override;
  void start(Now now) override;
  void on_api_event(const client::ApiEvent& event, Now now) override;
  void on_wakeup(Now now) override;
  std::optional<Instant> next_wakeup() const override;
  std::vector<client::ApiCommand> take_api_commands() override;

  void on_host_event(const HostEvent& event, Now now);
  /// Commands since the last call, in order: Observe and StopPod.
  std::vector<HostCommand> take_host_commands();
  /// The places of the pods on the machine, if they have changed since the last call.
  std::optional<std::vector<PodPlace>> take_places();

  /// The pods of the kubelet, all of them (PodSource::kKubelet).
  void set_pods(std::vector<api::Pod> pods, Now now);
  /// Holds all evictions, for this reason; nullopt: evictions are allowed again.
  void set_hold(std::optional<std::string> why, Now now);

  const CompanionOptions& options() const;
  std::shared_ptr<const api::Summary> last_summary() const;
  api::Json decisions(Now now) const;
  /// The present state, for users: no contract.
  api::Json state() const;
  std::vector<api::Pod> pods() const;

 private:
  struct Parts;
  explicit Companion(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace spillway::agent
