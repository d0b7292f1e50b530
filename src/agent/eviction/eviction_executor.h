// Carries out what eviction passes decide, and sees to it that the victims end: a grace is shortened when a hard
// threshold is met, and taken when memory does not last for it.
// Thread: loop. Invariant: the journal entry precedes the kill. Bounds: those of Victims. Source: Kubernetes docs,
// "Node-pressure Eviction"; spec "Eviction manager", 8, 10.
#pragma once

#include "agent/contract/context.h"
#include "agent/contract/decision_log.h"
#include "agent/contract/evictable_pods.h"
#include "agent/eviction/eviction_metrics.h"
#include "agent/eviction/eviction_readings.h"
#include "agent/eviction/eviction_victims.h"
#include "agent/eviction/eviction_witness.h"
#include "policy/eviction/decide.h"

#include <optional>
#include <span>
#include <string>

namespace spillway::agent {

class EvictionExecutor {
 public:
  /// The act that the machine has carried out already.
  struct Done {
    Urgency urgency{};
    Duration took{};  // from the reading to the signal
  };

  /// `witness` may be null.
  EvictionExecutor(AgentContext& context, EvictablePods& pods, DecisionLog& decisions, const EvictionReadings& readings,
                   EvictionMetrics& metrics, Victims& victims, EvictionWitness* witness)
      : context_(context),
        pods_(pods),
        decisions_(decisions),
        readings_(readings),
        metrics_(metrics),
        victims_(victims),
        witness_(witness) {}

  /// Ends the pod. `done`: the executed reaction of the machine; nullopt: decide and act now.
  void evict(const eviction::EvictPod& action, const eviction::PassResult& result, std::optional<Done> done, Now now);
  /// An eviction of an earlier instance is being finished.
  void resume(const eviction::EvictPod& action, Now now);
  /// Writes a decision to the journal.
  void record(JournalEntry entry);
  /// A reading has been taken: takes the grace from victims for which memory does not last, and shortens those that a
  /// hard threshold does not wait for.
  void hasten(std::span<const eviction::Threshold> thresholds, Now now);
  /// The machine has killed a victim by itself.
  void take_grace(const std::string& uid);
  /// Reports graces that were exceeded and gives up victims that do not end. True: the last one was given up.
  bool check_overdue(Now now);
  /// The pod has no process left. False: it was no victim.
  bool finish(const std::string& uid, Now now);

 private:
  JournalEntry entry_for(const eviction::EvictPod& action, const eviction::PassResult& result, Urgency urgency,
                         std::optional<Done> done, Now now) const;
  void take_grace(Victim& victim);
  void shorten_grace(Victim& victim, Now now);

  AgentContext& context_;
  EvictablePods& pods_;
  DecisionLog& decisions_;
  const EvictionReadings& readings_;
  EvictionMetrics& metrics_;
  Victims& victims_;
  EvictionWitness* witness_;
};

}  // namespace spillway::agent
