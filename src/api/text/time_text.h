// Times and ages as the API writes them. Thread: any.
// Source: Kubernetes API reference, "Time" and "MicroTime"; RFC 3339.
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <string>
#include <string_view>

namespace spillway::api {

/// "2026-01-02T03:04:05Z": whole seconds (metav1.Time).
std::string format_time(WallTime time);
/// "2026-01-02T03:04:05.000001Z" (metav1.MicroTime).
std::string format_micro_time(WallTime time);
/// RFC 3339, with or without fraction, any offset. kInvalid otherwise.
Result<WallTime> parse_time(std::string_view text);
/// The age column of kubectl: "5m30s", "3d4h", … Source: spec "API server contract", 15.3.
std::string human_duration(Duration duration);

}  // namespace spillway::api
