// Facts about node objects that scenarios and properties ask for.
// Thread: any.
#pragma once

#include "api/object/node.h"

#include <string>

namespace spillway::sim {

bool is_ready(const api::Node& node);

/// Pods are driven out because the node fell silent or said that it is not ready.
bool has_silence_taint(const api::Node& node);

/// Empty: it names none.
std::string zone_of(const api::Node& node);

}  // namespace spillway::sim
