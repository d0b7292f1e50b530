// Values of a scenario file: durations, amounts of memory, numbers with a fraction. Thread: any (pure).
#pragma once

#include "base/bytes.h"
#include "base/time.h"
#include "yaml/place.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::sim {

enum class Sign { kPositive, kAny };

/// nullopt where the member is missing. "90s", "1h30m"; with kAny also "-1h".
Result<std::optional<Duration>> read_duration(const yaml::Place& place, std::string_view name,
                                              Sign sign = Sign::kPositive);
/// "500Mi"; a plain number is bytes.
Result<std::optional<Bytes>> read_bytes(const yaml::Place& place, std::string_view name);
/// "5Mi/s" or "5Mi".
Result<std::optional<Bytes>> read_rate(const yaml::Place& place, std::string_view name);
/// Parses a number within these bounds, with or without a fraction.
Result<std::optional<double>> read_fraction(const yaml::Place& place, std::string_view name, double least, double most);
/// The quantity of a request or a limit, as written; empty where the member is missing.
Result<std::string> read_quantity(const yaml::Place& place, std::string_view name);
/// "key=value".
Result<std::optional<std::pair<std::string, std::string>>> read_label(const yaml::Place& place, std::string_view name);

}  // namespace spillway::sim
