// The present state of flow control, as tables of text for operators. Columns are named as upstream's where they mean
// the same. Thread: loop. Bounds: kFlowRowsMax rows. Source: Kubernetes docs, "Flow control", debug endpoints.
#pragma once

#include "apiserver/flow/flow_gate.h"

#include <optional>
#include <string>
#include <string_view>

namespace spillway::apiserver {

inline constexpr std::size_t kFlowRowsMax = 2'000;

/// The page of this path below /debug/api_priority_and_fairness; nullopt: there is none.
std::optional<std::string> flow_page(const FlowGate& gate, std::string_view path, Instant now);

}  // namespace spillway::apiserver
