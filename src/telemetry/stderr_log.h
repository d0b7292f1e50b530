// The log of a process that may fail: the line with the cause of its end is not followed by lines about its usual work.
// Thread: any.
#pragma once

#include "telemetry/log.h"

#include <functional>

namespace spillway::telemetry {

/// Makes a log like make_stderr_log(level, format); while `failed` returns true only warnings and errors are written.
/// `failed` is called by every thread that logs; null: never.
Log make_stderr_log(Level threshold, LogFormat format, std::function<bool()> failed);

}  // namespace spillway::telemetry
