// The line of /metrics of one instrument.
#pragma once

#include "telemetry/metrics.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace spillway::controllers {

/// The value of the line with that name and those labels (as they are written there, without braces); empty: there is
/// no such line.
inline std::string metric_line(const telemetry::Registry& metrics, std::string_view name, std::string_view labels) {
  const std::string text = metrics.text();
  const std::string line = fmt::format("\n{}{{{}}} ", name, labels);
  const std::size_t found = text.find(line);
  if (found == std::string::npos) return {};
  const std::size_t begin = found + line.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace spillway::controllers
