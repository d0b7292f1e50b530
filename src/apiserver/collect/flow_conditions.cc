#include "apiserver/collect/flow_conditions.h"

#include "apiserver/collect/bootstrap.h"
#include "apiserver/resource/object_condition.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kDangling = "Dangling";
constexpr std::string_view kFlowStatusManager = "api-priority-and-fairness-config-consumer-v1";

struct DanglingState {
  std::string_view status;
  std::string_view reason;
  std::string message;
};

std::string_view level_named_by(const Json& schema) {
  return schema.string_at({"spec", "priorityLevelConfiguration", "name"});
}

DanglingState dangling_state(const Json& schema, const ResourceCache& levels) {
  const std::string level(level_named_by(schema));
  const std::string said =
      fmt::format("This FlowSchema references the PriorityLevelConfiguration object named \"{}\"", level);
  if (levels.find(level)) return {"False", "Found", said + " and it exists"};
  return {"True", "NotFound", said + " but there is no such object"};
}

bool has_state(const Json& schema, const DanglingState& state) {
  const Json* list = schema.at({"status", "conditions"});
  if (list == nullptr || list->if_array() == nullptr) return false;
  for (const Json& condition : *list->if_array()) {
    if (condition.string_at({"type"}) != kDangling) continue;
    return condition.string_at({"status"}) == state.status && condition.string_at({"reason"}) == state.reason &&
           condition.string_at({"message"}) == state.message;
  }
  return false;
}

}  // namespace

FlowConditions::FlowConditions(Core& core, Writer& writer)
    : core_(core),
      writer_(writer),
      schemas_(core.cache.of(core.registry.get("flowschemas.flowcontrol.apiserver.k8s.io"))),
      levels_(core.cache.of(core.registry.get("prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"))) {}

void FlowConditions::load() {
  due_.clear();
  for (const auto& [key, schema] : schemas_.objects()) due_.insert(schema->name);
}

void FlowConditions::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (&cache == &schemas_) {
    if (event->object) {
      due_.insert(event->object->name);
    } else if (event->previous) {
      due_.erase(event->previous->name);
    }
  } else if (&cache == &levels_ && (!event->object || !event->previous)) {
    for (const auto& [key, schema] : schemas_.objects()) due_.insert(schema->name);
  }
}

void FlowConditions::act() {
  while (!is_writing_ && !due_.empty()) {
    const std::string name = *due_.begin();
    due_.erase(due_.begin());
    const ObjectPtr schema = schemas_.find(name);
    if (schema && !schema->meta.deleting && differs(*schema)) write(*schema);
  }
}

bool FlowConditions::differs(const StoredObject& schema) const {
  const Json document = schema.document();
  return !has_state(document, dangling_state(document, levels_));
}

void FlowConditions::write(const StoredObject& schema) {
  is_writing_ = true;
  UpdateJob job{.resource = &schemas_.resource(),
                .name = schema.name,
                .part = SubresourceId::kStatus,
                .change = [this](Json current) -> StatusResult<Json> {
                  const DanglingState state = dangling_state(current, levels_);
                  set_condition(current, kDangling, state.status, state.reason, state.message, core_.now.wall);
                  return current;
                },
                .uid = schema.meta.uid,
                .trusted = true,
                .context = {server_user(), std::string(kFlowStatusManager), false}};
  writer_.update(std::move(job),
                 [this, name = schema.name](const StatusResult<Written>& result) { on_written(name, result); });
}

void FlowConditions::on_written(const std::string& name, const StatusResult<Written>& result) {
  is_writing_ = false;
  if (!result && result.error().code != 404 && result.error().code != 409) {
    core_.timers.at(core_.now.mono + kRetry, [this, name] {
      due_.insert(name);
      run();
    });
  }
  run();
}

}  // namespace spillway::apiserver
