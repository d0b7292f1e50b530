// Runs a command with a text as standard input and returns its output: for plug-ins that are programs. Blocks; for a
// BlockingThread. Thread: any. Bounds: time and bytes of the answer; a command that exceeds them is killed with all its
// children.
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <cstddef>
#include <string>

namespace spillway::host {

struct ExecLimits {
  Duration time_max = seconds(10);
  std::size_t output_bytes_max = std::size_t{4} * 1024 * 1024;
};

/// The standard output of `command`, run by /bin/sh with `input` as standard input. Its standard error is ours.
/// kTimeout, kRequestEntityTooLarge: a limit was exceeded; kInternalError: it could not be started, or ended with
/// another code than 0.
Result<std::string> exec_exchange(const std::string& command, const std::string& input, const ExecLimits& limits);

}  // namespace spillway::host
