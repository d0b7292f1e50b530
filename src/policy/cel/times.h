// Moments and lengths of time as expressions write them. A moment lies in the years 1 to 9999 and is exact to the
// nanosecond. Thread: any (pure). Source: CEL language definition, timestamps and durations.
#pragma once

#include "base/time.h"
#include "policy/cel/value.h"

#include <optional>
#include <string>
#include <string_view>

namespace spillway::cel {

/// RFC 3339, with any number of digits behind a dot or a comma, of which nine count. nullopt: it is none, or beyond the
/// years that CEL has.
std::optional<Moment> parse_moment(std::string_view text);

/// RFC 3339 with as many digits behind the second as it takes, and the offset that the moment was written with.
std::string time_text(const Moment& time);

/// "5400s", "1.5s".
std::string seconds_text(Duration duration);

}  // namespace spillway::cel
