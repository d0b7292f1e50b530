// Options of the resource managers as their files write them. Thread: any (pure).
// Source: spec "Pod admission", 5; Go's strconv.ParseBool.
#pragma once

#include "base/error.h"

#include <string_view>

namespace spillway::admission {

/// Parses "true" or "false". kInvalid, in upstream's words: any other text.
Result<bool> parse_option(std::string_view name, std::string_view text);

}  // namespace spillway::admission
