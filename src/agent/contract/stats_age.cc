#include "agent/contract/stats_age.h"

#include <chrono>
#include <optional>

namespace spillway::agent {

std::vector<StatsAge> ages_of(const api::Summary& summary, WallTime now) {
  std::vector<StatsAge> ages;
  const auto add = [&](std::string_view part, std::optional<WallTime> at) {
    if (at) ages.push_back({part, std::chrono::duration<double>(now - *at).count()});
  };
  const auto older = [](std::optional<WallTime>& oldest, std::optional<WallTime> at) {
    if (at && (!oldest || *at < *oldest)) oldest = at;
  };
  std::optional<WallTime> pods;
  std::optional<WallTime> disk;
  for (const api::PodStats& pod : summary.pods) {
    if (pod.memory) older(pods, pod.memory->time);
    if (pod.ephemeral_storage) older(disk, pod.ephemeral_storage->time);
  }
  add("filesystem", summary.node.fs ? summary.node.fs->time : std::nullopt);
  add("node", summary.node.memory ? summary.node.memory->time : std::nullopt);
  add("pod_disk", disk);
  add("pods", pods);
  return ages;
}

}  // namespace spillway::agent
