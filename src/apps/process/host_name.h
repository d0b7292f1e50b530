#pragma once

#include <string>

namespace spillway::apps {

/// The machine's name, in lower case as node names are.
std::string host_name();

}  // namespace spillway::apps
