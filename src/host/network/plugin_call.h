// One call of a plug-in: a program that gets its input on standard input, and whose output counts when it has ended.
// Thread: one that may wait. Bounds: the time, and the bytes of each output; a program that takes longer is killed with
// its process group. Source: CNI specification 1.0.0, section 2.
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <cstddef>
#include <string>
#include <vector>

namespace spillway::host {

struct PluginCall {
  std::string program;  // a path
  std::vector<std::string> arguments = {};
  std::vector<std::string> environment = {};  // "NAME=value", added to this process's environment
  std::string input = {};
  Duration time_max = seconds(30);
  std::size_t output_max = std::size_t{1} << 20;  // bytes of each output
};

struct PluginAnswer {
  int code = 0;  // exit code; 128 + signal if the program was killed
  std::string output;
  std::string errors;
};

/// kTimeout: it took too long. kInternalError: it could not be started, or its output was too long.
Result<PluginAnswer> call_plugin(const PluginCall& call);

}  // namespace spillway::host
