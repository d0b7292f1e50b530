#include "agent/node/allocatable_enforcement.h"

#include <fmt/format.h>

namespace spillway::agent {
namespace {

constexpr Duration kRetry = minutes(1);

}  // namespace

void AllocatableEnforcement::start(Now) {
  if (limits_) apply();
}

void AllocatableEnforcement::apply() {
  context_.host_commands.emplace_back(LimitPods{*limits_});
}

void AllocatableEnforcement::on_limited(const PodsLimited& event, Now now) {
  const api::ObjectReference node = node_reference(context_.options.node_name);
  enforced_ = event.outcome.has_value();
  if (enforced_) {
    context_.events.record(node, client::EventType::kNormal, "NodeAllocatableEnforced",
                           "Updated Node Allocatable limit across pods", now);
    return;
  }
  context_.events.record(
      node, client::EventType::kWarning, "FailedNodeAllocatableEnforcement",
      fmt::format("Failed to update Node Allocatable Limits \"kubepods\": {}", event.outcome.error().text()), now);
  context_.api.at(now.mono + kRetry, [this](Now) { apply(); });
}

}  // namespace spillway::agent
