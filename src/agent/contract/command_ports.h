// Commands that the agent has run inside a container: probes, hooks, and commands requested by /run.
// Thread: any (values). Source: spec "Pod lifecycle", 9.5, 9.7, 11.1.
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway::agent {

/// Runs a program in a running container, as the container's own: its namespaces, cgroup, user and rights. Answered by
/// RanInContainer with the same id, once.
struct RunInContainer {
  std::uint64_t id = 0;
  std::string uid;
  std::string container;
  std::vector<std::string> argv;
  Duration timeout{};  // time after which the command's process group is killed; zero: never
};

inline constexpr std::size_t kCommandOutputMax = 10'240;

struct RanInContainer {
  std::uint64_t id = 0;
  /// An error: it could not be run (kNotFound: the container does not run), which is no statement about its health.
  Result<std::int32_t> exit_code = 0;  // 128 + signal if killed
  std::string output;      // stdout and stderr, in the order of their writes: the first kCommandOutputMax bytes
  bool timed_out = false;  // exit_code has no meaning then
};

}  // namespace spillway::agent
