// Common parts of the rows of vectors/scheduling: a cluster and its newcomer.
#pragma once

#include "api/json/json.h"
#include "api/object/pod.h"
#include "policy/node_load.h"
#include "policy/scheduling/profile.h"
#include "policy/scheduling/surroundings.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::scheduling {

/// The list in a row's `in`; without it, none.
const api::Json::Array& list_at(const api::Json& row, std::string_view member);
std::int64_t int_at(const api::Json& json, std::string_view member, std::int64_t otherwise);

/// A row's cluster and its newcomer.
struct Cluster {
  api::Pod pod;
  std::map<std::string, policy::NodeLoad> nodes;
  Surroundings around;
  Profile profile;
  std::map<std::string, std::vector<std::shared_ptr<const api::Pod>>> pods;  // bound, by node
};

Result<Cluster> read_cluster(const api::Json& row);

}  // namespace spillway::scheduling
