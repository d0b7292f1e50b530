// The incidents of examples/incidents, which are part of the program: included when the build is configured.
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace spillway::apps {

/// File name and text, by name.
extern const std::span<const std::pair<std::string_view, std::string_view>> kIncidentFiles;

}  // namespace spillway::apps
