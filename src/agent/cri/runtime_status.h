// The runtime's own description, parsed from its answer to Status. Thread: any (pure). Bounds: kHandlersMax handlers,
// as many as a node's status can carry. Source: CRI v1, StatusResponse; spec "Node agent", 4.7, 4.8, 7; KEP-3857.
#pragma once

#include "agent/contract/runtime_ports.h"
#include "api/json/json.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

inline constexpr std::size_t kHandlersMax = 100;

struct RuntimeStatus {
  std::string problem;          // the text for the node's Ready condition; empty: none
  std::string network_problem;  // for the node's Ready condition; empty: none
  std::vector<RuntimeHandler> handlers;
  std::optional<bool> supplemental_groups_policy;  // nullopt: the runtime does not report it

  friend bool operator==(const RuntimeStatus&, const RuntimeStatus&) = default;
};

/// `answer`: with the names of cri.proto; what is zero may be missing.
RuntimeStatus runtime_status(const api::Json& answer);

}  // namespace spillway::agent
