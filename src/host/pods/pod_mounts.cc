#include "host/pods/pod_mounts.h"

#include "host/kernel/kernel_file.h"
#include "host/volumes/mount_points.h"

#include <filesystem>
#include <system_error>

namespace spillway::host {

std::vector<std::string> mounts_of_pods(const std::string& state_dir) {
  std::error_code error;
  const std::string given = state_dir + "/pods/";
  const std::string real = std::filesystem::canonical(given, error).string() + "/";
  const auto text = read_file("/proc/self/mountinfo");
  if (error || !text) return {};
  return mounts_below(mount_points(*text), real, given);
}

}  // namespace spillway::host
