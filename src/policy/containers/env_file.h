// Environment files: lines of VARIABLE='value', written by a container into a volume and read for another one.
// Thread: any (pure). Source: KEP-3721 (environment variables from files); vectors pod-lifecycle/env_file.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>

namespace spillway::containers {

/// The value of a variable; nullopt: the file has none of that name. The first of several counts, and nothing behind it
/// is read. Values are in single quotes, are literal and may have several lines; lines that are empty or begin with #
/// are left out, as is a comment behind a closing quote; a blank behind = means an empty value. Errors name the line,
/// from 1.
Result<std::optional<std::string>> env_file_value(std::string_view text, std::string_view variable);

}  // namespace spillway::containers
