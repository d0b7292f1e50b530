// The questions that the dashboard asks about a running cluster, as scenarios: nodes fall silent, with the brakes off
// and on; or pods use more memory, with one eviction threshold and another. A question is checked word by word, and the
// scenario is made from the checked values. Thread: any (pure). Source: docs/dashboard.md, "What if".
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <string>

namespace spillway::sim {

/// One future, to be played twice: a scenario file without a cluster, and the two configurations.
struct WhatIf {
  std::string scenario;
  std::string config_a;
  std::string config_b;
};

/// {"zone": "a", "minutes": 10} or {"nodes": ["n1"], "minutes": 10}, or
/// {"pods": "default/web-*", "to": "2Gi", "minutes": 5, "memoryAvailable": ["100Mi", "10%"]}.
/// kInvalid: what is wrong with which member. Bounds: an hour, 1,000 nodes.
Result<WhatIf> parse_what_if(const api::Json& question);

}  // namespace spillway::sim
