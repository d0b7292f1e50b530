#include "agent/eviction/eviction_events.h"

#include "api/codec/codec.h"
#include "api/object/event.h"

#include <fmt/format.h>

namespace spillway::agent {
namespace {

api::ObjectReference reference_of(const eviction::EvictPod& action) {
  return {.kind = "Pod",
          .api_version = "v1",
          .ns = action.pod.ns,
          .name = action.pod.name,
          .uid = action.uid,
          .resource_version = {},
          .field_path = {}};
}

}  // namespace

void post_evicted_event(AgentContext& context, const eviction::EvictPod& action, Now now) {
  api::Event event;
  event.metadata.ns = action.pod.ns;
  event.metadata.name = fmt::format("{}.{:016x}", action.pod.name, now.wall.time_since_epoch().count() * 1000);
  event.metadata.annotations = action.annotations;
  event.involved_object = reference_of(action);
  event.type = "Warning";
  event.reason = "Evicted";
  event.message = action.message;
  event.source_component = context.options.event_component;
  event.source_host = context.options.node_name;
  event.reporting_component = context.options.event_component;
  event.reporting_instance = context.options.node_name;
  event.first_timestamp = now.wall;
  event.last_timestamp = now.wall;
  event.count = 1;
  context.api.create(client::object_path("v1", "events", action.pod.ns), api::encode(event),
                     [log = context.log](const Result<api::Json>& outcome, Now) {
                       if (!outcome) log.warning("eviction event not written", {{"error", outcome.error().text()}});
                     });
}

void record_exceeded_grace(AgentContext& context, const eviction::EvictPod& action, Now now) {
  context.events.record(reference_of(action), client::EventType::kWarning, "ExceededGracePeriod",
                        "Container runtime did not kill the pod within specified grace period.", now);
}

void record_threshold_met(AgentContext& context, std::string_view message, Now now) {
  context.events.record(node_reference(context.options.node_name), client::EventType::kWarning, "EvictionThresholdMet",
                        message, now);
}

}  // namespace spillway::agent
