#include "api/object/node.h"

#include <algorithm>

namespace spillway::api {

const NodeCondition* find_condition(const std::vector<NodeCondition>& conditions, std::string_view type) {
  const auto found =
      std::find_if(conditions.begin(), conditions.end(), [type](const NodeCondition& c) { return c.type == type; });
  return found != conditions.end() ? &*found : nullptr;
}

}  // namespace spillway::api
