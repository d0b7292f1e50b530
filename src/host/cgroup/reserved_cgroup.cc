#include "host/cgroup/reserved_cgroup.h"

#include "host/cgroup/memory_stat.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

constexpr std::array kLimited = {Controller::kCpu, Controller::kMemory, Controller::kPids};

/// ["system" "sshd"]: as upstream prints a cgroup.
std::string in_quotes(std::string_view path) {
  std::vector<std::string> names;
  while (!path.empty()) {
    const std::size_t end = path.find('/');
    if (end != 0) names.push_back(fmt::format("\"{}\"", path.substr(0, end)));
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
  }
  return fmt::format("[{}]", fmt::join(names, " "));
}

}  // namespace

Result<CgroupDir> open_reserved(const CgroupDir& root, const std::string& path) {
  Result<CgroupDir> found = root.open_path(path);
  if (!found && found.error().code != ErrorCode::kNotFound) return found;
  const bool v2 = root.version() == CgroupVersion::kV2;
  if (!found && v2) {
    return make_error(ErrorCode::kNotFound, "could not read controllers for cgroup {}: {}", in_quotes(path),
                      found.error().text());
  }
  std::vector<std::string> missing;
  for (const Controller controller : kLimited) {
    if (!root.has(controller) || (found && found->has(controller))) continue;
    missing.push_back(v2 ? std::string(to_string(controller))
                         : root.file_path(controller) + "/" + path.substr(path.find_first_not_of('/')));
  }
  if (missing.empty()) return found;
  return make_error(ErrorCode::kNotFound, "cgroup {} has some missing {}: {}", in_quotes(path),
                    v2 ? "controllers" : "paths", fmt::join(missing, ", "));
}

Outcome limit_reserved(const CgroupDir& root, const std::string& path, CgroupLimits limits) {
  SPILLWAY_TRY(cgroup, open_reserved(root, path));
  limits.swap = Swap::kLeftAsItIs;
  if (limits.memory && cgroup.version() == CgroupVersion::kV2) {
    SPILLWAY_TRY(used, read_memory(cgroup, nullptr));
    if (used.working_set_bytes > static_cast<std::uint64_t>(limits.memory->count())) {
      return make_error(ErrorCode::kConflict, "{} uses {} bytes of memory, more than the limit of {}", cgroup.path(),
                        used.working_set_bytes, limits.memory->count());
    }
  }
  return apply_limits(cgroup, limits);
}

}  // namespace spillway::host
