// The workloads of the demo as documents, and small questions about documents of the API.
// Pure.
#pragma once

#include "api/json/json.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apps {

struct DemoPod {
  std::string name;
  std::vector<std::string> command;
  std::string node;    // empty: the scheduler chooses
  std::string memory;  // request, and limit too if guaranteed
  bool guaranteed = false;
};

api::Json pod_document(const DemoPod& pod);
/// Well-behaved pods that tolerate a silent node for a short while only, so that the demo ends in time.
api::Json replica_set_document(const std::string& name, int replicas);
api::Json daemon_set_document(const std::string& name);

std::string_view name_of(const api::Json& object);
std::string_view phase_of(const api::Json& pod);
std::string_view node_of(const api::Json& pod);
bool is_leaving(const api::Json& pod);
bool has_label(const api::Json& object, std::string_view key, std::string_view value);
/// The status of a condition: True, False, Unknown, or empty if there is none.
std::string_view condition_of(const api::Json& object, std::string_view type);
bool has_taint(const api::Json& node, std::string_view key, std::string_view effect);
std::int64_t restarts_of(const api::Json& pod);

}  // namespace spillway::apps
