#include "host/containers/cri_log_rotation.h"

#include "host/containers/log_folders.h"

namespace spillway::host {

void CriLogRotation::start() {
  for (auto& [uid, pod] : pods_.all()) {
    for (auto& [name, container] : pod.containers) {
      if (!container.running || container.rotating || pod.stopping) continue;
      container.rotating = files_.submit([this, uid = uid, name = name, id = container.id, limits = options_.limits,
                                          path = log_in(pod.logs, name, container.attempt),
                                          now = loop_.now().wall]() -> runtime::Loop::Task {
        Result<LogTurn> turn = turn_log(path, limits, now);
        return [this, uid, name, id, turn = std::move(turn)] { on_turned(uid, name, id, turn); };
      });
    }
  }
  loop_.at(loop_.now().mono + options_.interval, alive_.guard([this] { start(); }));
}

void CriLogRotation::on_turned(const std::string& uid, const std::string& name, const std::string& id,
                               const Result<LogTurn>& turn) {
  CriContainer* container = pods_.find_container(uid, name, id);
  if (container != nullptr) container->rotating = false;
  if (!turn) {
    log_.warning("log of a container not rotated",
                 {{"pod_uid", uid}, {"container", name}, {"error", turn.error().text()}});
    return;
  }
  if (turn->what == LogTurn::What::kShort) return;
  if (container != nullptr) container->rotating = true;
  reopen(uid, name, id, *turn);
}

/// Called also for a container that has ended meanwhile: then the runtime refuses, and the log gets its name back.
void CriLogRotation::reopen(const std::string& uid, const std::string& name, const std::string& id, LogTurn turn) {
  calls_.call("ReopenContainerLog", api::Json::object({{"container_id", id}}), kRuntimeCallMax,
              [this, uid, name, id, turn = std::move(turn)](Result<api::Json> reopened) {
                on_reopened(uid, name, id, turn, reopened ? Outcome() : Outcome(reopened.error()));
              });
}

void CriLogRotation::on_reopened(const std::string& uid, const std::string& name, const std::string& id,
                                 const LogTurn& turn, const Outcome& reopened) {
  if (pods_.find(uid) == nullptr) return;
  if (CriContainer* container = pods_.find_container(uid, name, id)) container->rotating = false;
  if (reopened) return;
  log_.warning("the container runtime did not reopen a log",
               {{"pod_uid", uid}, {"container", name}, {"error", reopened.error().text()}});
  if (turn.what != LogTurn::What::kRenamed) return;
  const std::string path = turn.older.substr(0, turn.older.rfind('.'));
  const bool queued = files_.submit([path, older = turn.older]() -> runtime::Loop::Task {
    ignored(turn_back(path, older), "then the log continues under its older name");
    return {};
  });
  if (!queued) log_.warning("log of a container has another name now", {{"log", turn.older}});
}

}  // namespace spillway::host
