// Records the acts of the node lifecycle controller: events of nodes, and decisions for the witness; and requests leave
// for acts from the gate. Thread: loop.
#pragma once

#include "controllers/nodes/lifecycle_witness.h"
#include "controllers/shared/act_gate.h"
#include "controllers/shared/shared.h"
#include "policy/lifecycle/zone.h"

#include <optional>
#include <string>
#include <string_view>

namespace spillway::controllers {

/// The node's name for the gate.
inline std::string node_subject(const std::string& name) {
  return "node/" + name;
}

class NodeActs {
 public:
  /// `witness`: null: no observer. `gate` and `witness` must outlive this.
  NodeActs(Shared shared, ActGate& gate, lifecycle::ZoneLabels zone_labels, LifecycleWitness* witness)
      : shared_(shared), gate_(gate), zone_labels_(zone_labels), witness_(witness) {}

  /// nullopt: the act may be carried out now. Else a brake holds it, and the caller tries again at that time.
  std::optional<Instant> ask_gate(lifecycle::ActKind kind, const api::Node& node, Now now);
  /// `reasons`: rendered; may be empty.
  void record_decision(std::string subject, std::string decision, std::string reasons, Now now);
  void record_event(const api::Node& node, std::string_view reason, const std::string& message, Now now);

  std::string zone_of(const api::Node& node) const;

 private:
  Shared shared_;
  ActGate& gate_;
  lifecycle::ZoneLabels zone_labels_;
  LifecycleWitness* witness_;
};

}  // namespace spillway::controllers
