// Logs that the runtime writes: turned over while containers run, gone before what wrote them is.
#include "host/disk/dead_containers.h"
#include "host/pods/cri_runtime.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::host {
namespace {

using api::Json;

}  // namespace

void CriRuntime::rotate_logs() {
  for (auto& [uid, pod] : pods_) {
    for (auto& [name, container] : pod.containers) {
      if (!container.running || container.rotating || pod.stopping) continue;
      container.rotating = log_files_.submit([this, uid = uid, name = name, id = container.id, limits = options_.logs,
                                              path = log_in(pod.logs, name, container.attempt),
                                              now = loop_.now().wall]() -> runtime::Loop::Task {
        Result<LogTurn> turn = turn_log(path, limits, now);
        return [this, uid, name, id, turn = std::move(turn)] { on_turned(uid, name, id, turn); };
      });
    }
  }
  loop_.at(loop_.now().mono + options_.log_check_interval, [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) rotate_logs();
  });
}

void CriRuntime::on_turned(const std::string& uid, const std::string& name, const std::string& id,
                           const Result<LogTurn>& turn) {
  Pod* pod = find(uid);
  const auto container = pod == nullptr ? std::map<std::string, Container>::iterator{} : pod->containers.find(name);
  const bool is_same = pod != nullptr && container != pod->containers.end() && container->second.id == id;
  if (is_same) container->second.rotating = false;
  if (!turn) {
    log_.warning("log of a container not rotated",
                 {{"pod_uid", uid}, {"container", name}, {"error", turn.error().text()}});
    return;
  }
  if (turn->what == LogTurn::What::kShort) return;
  if (is_same) container->second.rotating = true;
  reopen_log(uid, name, id, *turn);
}

/// Called also for a container that has ended meanwhile: then the runtime refuses, and the log gets its name back.
void CriRuntime::reopen_log(const std::string& uid, const std::string& name, const std::string& id, LogTurn turn) {
  call("ReopenContainerLog", Json::object({{"container_id", id}}), kRuntimeCallMax,
       [this, uid, name, id, turn = std::move(turn)](Result<Json> reopened) {
         Pod* pod = find(uid);
         if (pod == nullptr) return;
         const auto container = pod->containers.find(name);
         const bool is_same = container != pod->containers.end() && container->second.id == id;
         if (is_same) container->second.rotating = false;
         if (reopened) return;
         log_.warning("the container runtime did not reopen a log",
                      {{"pod_uid", uid}, {"container", name}, {"error", reopened.error().text()}});
         if (turn.what != LogTurn::What::kRenamed) return;
         const std::string path = turn.older.substr(0, turn.older.rfind('.'));
         const bool queued = log_files_.submit([path, older = turn.older]() -> runtime::Loop::Task {
           ignored(turn_back(path, older), "then the log goes on under its older name");
           return {};
         });
         if (!queued) log_.warning("log of a container has another name now", {{"log", turn.older}});
       });
}

void CriRuntime::on_command(const agent::RemoveContainer& command) {
  remove_ended(command.uid, command.name, command.attempt);
}

/// The logs are removed first. What cannot be removed is removed after the next list of the runtime.
void CriRuntime::remove_ended(const std::string& uid, const std::string& name, std::int32_t attempt,
                              const std::function<void()>& then) {
  const Pod* pod = find(uid);
  if (pod == nullptr || pod->logs.empty() || name.contains('/')) return then();
  const auto instance = pod->ended.find({name, attempt});
  if (instance == pod->ended.end()) return then();
  const std::string folder = fmt::format("{}/{}", pod->logs, name);
  const auto remove = [this, uid, key = instance->first, id = instance->second, then](const Outcome& deleted) {
    if (!deleted) {
      log_.warning("log of an ended container not removed", {{"pod_uid", uid}, {"error", deleted.error().text()}});
      return then();
    }
    call("RemoveContainer", Json::object({{"container_id", id}}), kRuntimeCallMax,
         [this, uid, key, then](Result<Json> removed) {
           const bool gone = removed || removed.error().code == ErrorCode::kNotFound;
           if (!gone)
             log_.warning("ended container not removed", {{"pod_uid", uid}, {"error", removed.error().text()}});
           if (Pod* again = find(uid); gone && again != nullptr) again->ended.erase(key);
           then();
         });
  };
  const bool queued = files_.submit([folder, log = log_in(pod->logs, name, attempt), remove]() -> runtime::Loop::Task {
    Outcome deleted = delete_log(folder, log);
    return [remove, deleted = std::move(deleted)] { remove(deleted); };
  });
  if (queued) return;
  log_.warning("log of an ended container not removed", {{"pod_uid", uid}, {"container", name}});
  then();
}

}  // namespace spillway::host
