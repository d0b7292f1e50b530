// `spillway end-pods`: run by packages before the program is removed, and by units when the machine shuts down.
#include "apps/commands/commands.h"
#include "apps/node/node_options.h"
#include "apps/process/process.h"
#include "host/cgroup/node_slice.h"
#include "host/containerd/daemon.h"

#include <filesystem>
#include <set>
#include <string>
#include <system_error>

namespace spillway::apps {
namespace {

constexpr Duration kGraceOfLeftPods = seconds(5);

/// All spellings of the data directory that its nodes may have been started with: their cgroups are named after that
/// text.
std::set<std::string> spellings_of(const std::string& directory) {
  const auto bare = [](std::string text) {
    while (text.size() > 1 && text.ends_with('/')) text.pop_back();
    return text;
  };
  std::error_code unknown;
  const std::string whole = bare(std::filesystem::absolute(directory, unknown).lexically_normal().string());
  return {directory, bare(directory), whole, whole + "/"};
}

/// Instances of `spillway up` with this data directory, and of agents with a state directory below it.
std::set<std::string> instances_below(const std::string& directory) {
  std::set<std::string> found;
  const std::set<std::string> spellings = spellings_of(directory);
  for (const std::string& each : spellings) found.insert(instance_of(each));
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(directory, unreadable)) {
    const std::string name = entry.path().filename().string();
    for (const std::string& each : spellings) found.insert(instance_of(each + "/" + name));
  }
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
    const std::string whole = std::filesystem::absolute(directory).lexically_normal().string();
    if (const Outcome ended = host::end_left_daemon({whole + "/containerd"}); !ended) {
      print_error(ended.error());
      code = cli::kExitFailure;
    }
  }
  return code;
}

}  // namespace spillway::apps
