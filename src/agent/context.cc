#include "agent/context.h"

namespace spillway::agent {

api::ObjectReference node_reference(const std::string& node_name) {
  return {.kind = "Node",
          .api_version = {},
          .ns = {},
          .name = node_name,
          .uid = node_name,
          .resource_version = {},
          .field_path = {}};
}

}  // namespace spillway::agent
