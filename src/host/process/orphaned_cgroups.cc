#include "host/process/orphaned_cgroups.h"

#include "host/cgroup/cgroup_kill.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::host {
namespace {

constexpr std::string_view kOrphanPrefix = "pod";

}  // namespace

std::vector<std::string> OrphanedCgroups::clear(const std::function<bool(std::string_view uid)>& is_known) {
  std::vector<std::string> removed;
  std::set<std::string> seen;
  for (const api::QosClass qos : {api::QosClass::kGuaranteed, api::QosClass::kBurstable, api::QosClass::kBestEffort}) {
    const CgroupDir& parent = slice_.parent_of(qos);
    const Result<std::vector<std::string>> names = parent.children();
    if (!names) continue;
    for (const std::string& name : *names) {
      if (!name.starts_with(kOrphanPrefix) || is_known(std::string_view(name).substr(kOrphanPrefix.size()))) continue;
      const std::string path = fmt::format("{}/{}", parent.path(), name);
      if (!seen_.contains(path)) {
        seen.insert(path);
        continue;
      }
      const Result<CgroupDir> orphan = parent.open_child(name);
      if (orphan) ignored(kill_all(*orphan), "what lives on is killed the next time");
      remove_tree(parent, name) ? removed.push_back(path) : static_cast<void>(seen.insert(path));
    }
  }
  seen_ = std::move(seen);
  return removed;
}

}  // namespace spillway::host
