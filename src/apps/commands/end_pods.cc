// `spillway end-pods`: what packages do before the program goes, and units when the machine does.
#include "apps/commands/commands.h"
#include "apps/node/node_options.h"
#include "apps/process/process.h"
#include "host/cgroup/node_slice.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace spillway::apps {
namespace {

constexpr Duration kGraceOfLeftPods = seconds(5);

/// Of `spillway up` with this data directory, and of agents with a state directory in here.
std::vector<std::string> instances_below(std::string directory) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  std::vector<std::string> found{instance_of(directory)};
  std::error_code unreadable;
  for (const auto& each : std::filesystem::directory_iterator(directory, unreadable))
    found.push_back(instance_of(each.path().string()));
  return found;
}

}  // namespace

int run_end_pods(const cli::EndPodsCommand& command) {
  const auto mounts = host::read_cgroup_mounts();
  const auto root = mounts ? host::CgroupDir::open_root(*mounts) : Result<host::CgroupDir>(mounts.error());
  if (!root) {
    print_error(root.error());
    return cli::kExitFailure;
  }
  int code = cli::kExitOk;
  for (const std::string& directory : command.directories) {
    for (const std::string& instance : instances_below(directory)) {
      if (const Outcome ended = host::end_left_nodes(*root, instance, kGraceOfLeftPods); !ended) {
        print_error(ended.error());
        code = cli::kExitFailure;
      }
    }
  }
  return code;
}

}  // namespace spillway::apps
