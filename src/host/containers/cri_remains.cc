#include "host/containers/cri_remains.h"

#include "host/disk/dead_containers.h"
#include "host/pods/pod_mounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;
using api::Json;

constexpr std::int64_t kUnknownStop = 2;  // stop timeout in seconds of a container in an unknown state

WallTime created_at(const Json& item) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(nanoseconds(number_in(item, {"created_at"}))));
}

agent::RuntimeState state_of(const Json& container) {
  switch (number_in(container, {"state"})) {
    case 0:
      return agent::RuntimeState::kCreated;
    case 1:
      return agent::RuntimeState::kRunning;
    case 2:
      return agent::RuntimeState::kExited;
    default:
      return agent::RuntimeState::kUnknown;
  }
}

std::vector<std::string> directories_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename().string();
    if (std::ranges::count(name, '_') == 2) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

void CriRemains::list() {
  if (owner_.is_empty() || !pods_.is_complete() || pods_.is_closing()) return;
  calls_.call("ListPodSandbox", owner_.list_request(), kRuntimeCallMax, [this](Result<Json> sandboxes) {
    if (!sandboxes) return;
    calls_.call("ListContainers", owner_.list_request(), kRuntimeCallMax,
                [this, sandboxes = *std::move(sandboxes)](const Result<Json>& containers) {
                  if (containers) report(sandboxes, *containers);
                });
  });
}

void CriRemains::report(const Json& sandboxes, const Json& containers) {
  agent::RemainsListed listed;
  std::map<std::string, std::string> uid_of;
  for (const Json& each : list_in(sandboxes, "items")) {
    agent::RemainingSandbox& made = listed.sandboxes.emplace_back();
    made.id = each.string_at({"id"});
    made.pod_uid = each.string_at({"metadata", "uid"});
    made.ready = number_in(each, {"state"}) == 0;
    made.created = created_at(each);
    uid_of[made.id] = made.pod_uid;
  }
  for (const Json& each : list_in(containers, "containers")) {
    agent::RemainingContainer& made = listed.containers.emplace_back();
    made.id = each.string_at({"id"});
    made.name = each.string_at({"metadata", "name"});
    made.attempt = static_cast<std::int32_t>(number_in(each, {"metadata", "attempt"}));
    made.sandbox = each.string_at({"pod_sandbox_id"});
    made.pod_uid = uid_of[made.sandbox];
    made.state = state_of(each);
    made.created = created_at(each);
  }
  std::set<std::string> running;
  for (const agent::RemainingContainer& each : listed.containers)
    if (each.state == agent::RuntimeState::kRunning) running.insert(each.id);
  folders_.remove_old_links(running);
  const bool queued =
      files_.submit([this, folder = state_dir_ + "/pods", listed = std::move(listed)]() mutable -> runtime::Loop::Task {
        listed.directories = directories_in(folder);
        return [this, listed = std::move(listed)]() mutable { events_.emit(std::move(listed)); };
      });
  if (!queued) log_.warning("remains of pods are not checked: too many removals are under way");
}

void CriRemains::remove(agent::RemoveRemains command) {
  if (pods_.is_closing()) return;
  remove_containers(std::move(command.containers),
                    [this, sandboxes = std::move(command.sandboxes), directories = std::move(command.directories)] {
                      remove_idle_sandboxes(sandboxes, [this, directories] { remove_directories(directories); });
                    });
}

void CriRemains::remove_ended(const std::string& uid, const std::string& name, std::int32_t attempt,
                              const std::function<void()>& then) {
  const CriPod* pod = pods_.find(uid);
  if (pod == nullptr || pod->logs.empty() || name.contains('/')) return then();
  const auto instance = pod->ended.find({name, attempt});
  if (instance == pod->ended.end()) return then();
  const std::string folder = fmt::format("{}/{}", pod->logs, name);
  const auto remove = [this, uid, key = instance->first, id = instance->second, then](const Outcome& deleted) {
    if (!deleted) {
      log_.warning("log of an ended container not removed", {{"pod_uid", uid}, {"error", deleted.error().text()}});
      return then();
    }
    calls_.call("RemoveContainer", Json::object({{"container_id", id}}), kRuntimeCallMax,
                [this, uid, key, then](Result<Json> removed) {
                  const bool gone = removed || removed.error().code == ErrorCode::kNotFound;
                  if (!gone)
                    log_.warning("ended container not removed", {{"pod_uid", uid}, {"error", removed.error().text()}});
                  if (CriPod* again = pods_.find(uid); gone && again != nullptr) again->ended.erase(key);
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

void CriRemains::remove_containers(std::vector<agent::ContainerRemoval> left, std::function<void()> then) {
  if (left.empty()) return then();
  const agent::ContainerRemoval next = left.front();
  left.erase(left.begin());
  remove_container(next, [this, left = std::move(left), then = std::move(then)]() mutable {
    remove_containers(std::move(left), std::move(then));
  });
}

void CriRemains::remove_container(const agent::ContainerRemoval& removal, std::function<void()> then) {
  for (const auto& [uid, pod] : pods_.all()) {
    const auto is_this = [&](const auto& entry) { return entry.second == removal.id; };
    if (pod.removing && std::ranges::any_of(pod.ended, is_this)) return then();
    // A container that is being created may be listed as created, although its id is not known yet.
    const bool lives =
        std::ranges::any_of(pod.containers, [&](const auto& entry) { return entry.second.id == removal.id; });
    if (lives) return then();
    const auto ended = std::ranges::find_if(pod.ended, is_this);
    if (ended == pod.ended.end()) continue;
    return remove_ended(uid, ended->first.first, ended->first.second, then);
  }
  const auto remove = [this, id = removal.id, then] {
    calls_.call("RemoveContainer", Json::object({{"container_id", id}}), kRuntimeCallMax,
                [this, id, then](Result<Json> removed) {
                  if (!removed && removed.error().code != ErrorCode::kNotFound)
                    log_.warning("container not removed", {{"id", id}, {"error", removed.error().text()}});
                  then();
                });
  };
  if (!removal.stop_first) return remove();
  const Json request = Json::object({{"container_id", removal.id}, {"timeout", kUnknownStop}});
  calls_.call("StopContainer", request, kRuntimeCallMax, [this, id = removal.id, remove, then](Result<Json> stopped) {
    if (stopped) return remove();
    log_.warning("container of unknown state not ended", {{"id", id}, {"error", stopped.error().text()}});
    then();
  });
}

void CriRemains::remove_idle_sandboxes(std::vector<std::string> left, std::function<void()> then) {
  if (left.empty()) return then();
  const std::string id = left.front();
  left.erase(left.begin());
  const auto next = [this, left = std::move(left), then = std::move(then)] { remove_idle_sandboxes(left, then); };
  const auto owner = std::ranges::find_if(pods_.all(), [&](const auto& entry) {
    return !entry.second.removing && entry.second.old_sandboxes.contains(id);
  });
  if (owner == pods_.all().end()) return next();
  const Json request = Json::object({{"pod_sandbox_id", id}});
  calls_.call("StopPodSandbox", request, kRuntimeCallMax,
              [this, id, request, next, uid = owner->first](Result<Json> stopped) {
                if (!stopped && stopped.error().code != ErrorCode::kNotFound) {
                  log_.warning("sandbox not stopped", {{"id", id}, {"error", stopped.error().text()}});
                  return next();
                }
                calls_.call("RemovePodSandbox", request, kRuntimeCallMax, [this, id, next, uid](Result<Json> removed) {
                  CriPod* pod = pods_.find(uid);
                  if (removed && pod != nullptr) {
                    pod->old_sandboxes.erase(id);
                    pod->lost_sandboxes.erase(id);
                  }
                  if (!removed) log_.warning("sandbox not removed", {{"id", id}, {"error", removed.error().text()}});
                  next();
                });
              });
}

/// A directory with a mount below it is never removed: the mount's files would be deleted with it.
void CriRemains::remove_directories(const std::vector<std::string>& names) {
  if (names.empty()) return;
  const std::vector<std::string> mounts = mounts_of_pods(state_dir_);
  for (const std::string& name : names) {
    const std::string path = fmt::format("{}/pods/{}", state_dir_, name);
    const bool plain = !name.empty() && !name.contains('/') && name.front() != '.';
    const bool used =
        std::ranges::any_of(pods_.all(), [&](const auto& entry) { return entry.second.directory == path; });
    const bool holds =
        std::ranges::any_of(mounts, [&](const std::string& each) { return each.starts_with(path + "/"); });
    if (!plain || used) continue;
    if (holds) {
      log_.warning("directory of a deleted pod not removed: it contains a mount", {{"directory", path}});
      continue;
    }
    const std::string logs = folders_.folder_of_remains(name);
    const bool queued = files_.submit([path, logs]() -> runtime::Loop::Task {
      std::error_code error;
      fs::remove_all(logs, error);
      fs::remove_all(path, error);
      return {};
    });
    if (!queued) return log_.warning("directory of a deleted pod not removed", {{"directory", path}});
  }
}

}  // namespace spillway::host
