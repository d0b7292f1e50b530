// Moments and lengths of time as expressions write them. A moment lies in the years 1 to 9999 and is exact to the
// microsecond. Thread: any (pure). Source: CEL language definition, timestamps and durations.
#pragma once

#include "base/time.h"

#include <string>

namespace spillway::cel {

/// In the years that CEL has.
bool in_range(WallTime time);

/// RFC 3339 with as many digits behind the second as it takes.
std::string time_text(WallTime time);

/// "5400s", "1.5s".
std::string seconds_text(Duration duration);

}  // namespace spillway::cel
