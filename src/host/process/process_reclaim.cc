#include "host/process/process_reclaim.h"

#include <utility>

namespace spillway::host {

void ProcessReclaim::run(const agent::ReclaimNode& command) {
  const bool queued =
      files_.submit([this, alive = alive_.ref(), command, logs = logs_of_pods()]() -> runtime::Loop::Task {
        agent::Reclaimed done{command.id, {}};
        for (const eviction::ReclaimAction action : command.actions) {
          if (action == eviction::ReclaimAction::kContainers) {
            done.outcomes.push_back(delete_dead_logs(logs));
          } else {
            done.outcomes.push_back(
                {.action = action, .deleted = 0, .freed = {}, .problem = "the process runtime has no images"});
          }
        }
        return alive.guard([this, done = std::move(done)]() mutable { on_removed(std::move(done)); });
      });
  if (!queued)
    host_.log.warning("too much is being deleted to reclaim anything", {{"node", host_.slice.options().node}});
}

std::vector<PodLogs> ProcessReclaim::logs_of_pods() const {
  std::vector<PodLogs> logs;
  for (const auto& [uid, pod] : pods_.all()) {
    if (pod.directory.empty()) continue;
    PodLogs& each = logs.emplace_back(PodLogs{pod.directory, {}, {}});
    // A pod that was ended never starts again.
    if (pod.stopping && pod.containers.empty()) each.spent = pod.work_folder();
    for (const auto& [name, container] : pod.containers) each.live.insert(container->log_path());
  }
  return logs;
}

void ProcessReclaim::on_removed(agent::Reclaimed done) {
  observer_.after_disk_reading_since(host_.loop.now().mono, alive_.guard([this, done = std::move(done)]() mutable {
    receiver_.on_host_event(std::move(done));
  }));
}

}  // namespace spillway::host
