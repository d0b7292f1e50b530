#include "agent/contract/context.h"

#include "api/text/duration.h"

#include <algorithm>
#include <chrono>

namespace spillway::agent {

api::Json age_of(std::optional<Instant> at, Now now) {
  return at ? api::Json(std::chrono::duration<double>(now.mono - *at).count()) : api::Json();
}

api::ObjectReference node_reference(const std::string& node_name) {
  return {.kind = "Node",
          .api_version = "v1",
          .ns = {},
          .name = node_name,
          .uid = {},
          .resource_version = {},
          .field_path = {}};
}

Duration AgentContext::heartbeat_timeout() const {
  return std::min(options.status_update_frequency, options.lease_duration);
}

std::string AgentContext::heartbeat_query() const {
  return "?timeout=" + spillway::api::format_duration(heartbeat_timeout());
}

}  // namespace spillway::agent
