// Facts about node objects that scenarios and properties use.
// Thread: any.
#pragma once

#include "api/object/node.h"

#include <string>

namespace spillway::sim {

bool is_ready(const api::Node& node);

/// True if pods are evicted because the node is silent or reported itself not ready.
bool has_silence_taint(const api::Node& node);

/// The node's zone; empty: it names none.
std::string zone_of(const api::Node& node);

}  // namespace spillway::sim
