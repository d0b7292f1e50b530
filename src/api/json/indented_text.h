// JSON on several lines, for people. Thread: any (pure).
#pragma once

#include "api/json/json.h"

#include <cstddef>
#include <string>

namespace spillway::api {

/// `blanks` per level, at least one. API servers write two, kubectl four (to_pretty_text()).
std::string to_indented_text(const Json& value, std::size_t blanks);

}  // namespace spillway::api
