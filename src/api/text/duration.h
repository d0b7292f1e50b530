// metav1.Duration: Go's duration syntax, as flags and configuration files write it ("1h30m", "300ms", "0").
// Thread: any. Source: Go package time, ParseDuration and Duration.String.
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <string>
#include <string_view>

namespace spillway::api {

/// Optional sign, decimal numbers with a unit (ns, us, µs, ms, s, m, h), repeatable; a bare "0". kInvalid: anything
/// else, or more than 64-bit nanoseconds can hold.
Result<Duration> parse_duration(std::string_view text);

/// "1h30m0s", "1.5s", "200ms", "0s".
std::string format_duration(Duration duration);

}  // namespace spillway::api
