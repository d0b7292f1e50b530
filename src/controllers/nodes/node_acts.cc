#include "controllers/nodes/node_acts.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::controllers {

std::optional<Instant> NodeActs::ask_gate(lifecycle::ActKind kind, const api::Node& node, Now now) {
  const std::string subject = node_subject(node.metadata.name);
  const std::optional<Instant> again = gate_.ask({kind, zone_of(node), {}}, subject, now);
  if (again && witness_ != nullptr) {
    const ActGate::Held* const held = gate_.find(subject);
    record_decision(node.metadata.name, fmt::format("held: {}", lifecycle::to_string(kind)),
                    held == nullptr ? std::string() : policy::render(held->reason), now);
  }
  return again;
}

void NodeActs::record_decision(std::string subject, std::string decision, std::string reasons, Now now) {
  if (witness_ == nullptr) return;
  witness_->on_decision({std::move(subject), std::move(decision), std::move(reasons)}, now);
}

void NodeActs::record_event(const api::Node& node, std::string_view reason, const std::string& message, Now now) {
  shared_.events.record(client::reference_to(node), client::EventType::kNormal, reason, message, now);
}

std::string NodeActs::zone_of(const api::Node& node) const {
  return lifecycle::zone_key(node.metadata.labels, zone_labels_);
}

}  // namespace spillway::controllers
