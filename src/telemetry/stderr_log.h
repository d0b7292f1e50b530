// The log of a process that may fail: the line that says why it ends is not followed by lines about its usual work.
// Thread: any.
#pragma once

#include "telemetry/log.h"

#include <atomic>
#include <memory>

namespace spillway::telemetry {

/// As make_stderr_log(level, format); once `failed` is true only warnings and errors are written.
Log make_stderr_log(Level threshold, LogFormat format, std::shared_ptr<const std::atomic<bool>> failed);

}  // namespace spillway::telemetry
