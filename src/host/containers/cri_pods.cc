#include "host/containers/cri_pods.h"

#include "agent/cri/image_name.h"
#include "host/containers/log_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace spillway::host {

CriPod* CriPods::find(const std::string& uid) {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second;
}

const CriPod* CriPods::find(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second;
}

CriPod* CriPods::find(const std::string& uid, const PodIdentity& identity) {
  CriPod* found = find(uid);
  return found != nullptr && found->identity == identity ? found : nullptr;
}

bool CriPods::is_made_anew(const std::string& uid, const PodIdentity& identity) const {
  if (identity == nullptr) return false;
  const CriPod* found = find(uid);
  return removals_.has_later(uid) || (found != nullptr && found->identity != identity);
}

const CriPod* CriPods::find(const api::PodKey& key) const {
  const CriPod* found = nullptr;
  for (const auto& [uid, pod] : pods_) {
    // A pod that was created again exists beside the remains of its namesake.
    if (pod.command.pod == key && (found == nullptr || found->stopping)) found = &pod;
  }
  return found;
}

CriContainer* CriPods::find_container(const std::string& uid, const std::string& name) {
  CriPod* pod = find(uid);
  if (pod == nullptr) return nullptr;
  const auto found = pod->containers.find(name);
  return found == pod->containers.end() ? nullptr : &found->second;
}

CriContainer* CriPods::find_container(const std::string& uid, const std::string& name, const std::string& id) {
  CriContainer* found = find_container(uid, name);
  return found != nullptr && found->id == id ? found : nullptr;
}

std::vector<api::PodKey> CriPods::keys() const {
  std::vector<api::PodKey> keys;
  keys.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) keys.push_back(pod.command.pod);
  return keys;
}

std::vector<agent::RunningPod> CriPods::running() const {
  std::vector<agent::RunningPod> all;
  for (const auto& [uid, pod] : pods_) {
    agent::RunningPod made{.uid = uid, .pod = pod.command.pod, .created = pod.created, .containers = {}};
    for (const auto& [name, container] : pod.containers)
      if (container.running) made.containers.push_back(name);
    const bool ended = pod.stopping && pod.containers.empty();
    if (!pod.sandbox.empty() && !ended) all.push_back(std::move(made));
  }
  return all;
}

std::shared_ptr<const ReactionTarget> CriPods::find_target(const std::string& uid) {
  CriPod* pod = find(uid);
  if (pod == nullptr || pod->broken || pod->removing || !pod->cgroup) return nullptr;
  if (!pod->target) {
    std::vector<std::shared_ptr<ContainerHandle>> handles;
    for (const auto& [name, container] : pod->containers)
      if (container.running && container.handle) handles.push_back(container.handle);
    pod->target =
        std::make_shared<const ReactionTarget>(slice_.parent_of(pod->command.qos), pod->cgroup, std::move(handles));
  }
  return pod->target;
}

void CriPods::change_target(CriPod& pod) {
  pod.target.reset();
  events_.change_targets();
}

std::vector<PodView> CriPods::views() const {
  std::vector<PodView> all;
  all.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) {
    if (pod.broken || pod.removing || !pod.cgroup) continue;
    PodView view{.uid = uid,
                 .pod = pod.command.pod,
                 .cgroup = &pod.cgroup,
                 .work_directory = {},
                 .containers = {},
                 .started = pod.created,
                 .own_network = !pod.command.host_network,
                 .volumes = {}};
    for (const std::string& name : pod.disk_volumes)
      view.volumes.push_back({name, fmt::format("{}/_volumes/kubernetes.io~empty-dir/{}", pod.directory, name)});
    for (const auto& [name, container] : pod.containers)
      if (container.running && container.cgroup)
        view.containers.push_back({name, &container.cgroup, {}, container.started_at});
    all.push_back(std::move(view));
  }
  return all;
}

std::vector<PodFolder> CriPods::folders() const {
  std::vector<PodFolder> folders;
  for (const auto& [uid, pod] : pods_) {
    if (pod.broken || pod.directory.empty()) continue;
    folders.push_back({.uid = uid, .logs = pod.logs, .directory = pod.directory + "/_files", .volumes = {}});
  }
  return folders;
}

Result<std::string> CriPods::find_log(const api::PodKey& key, const std::string& container,
                                      std::int32_t attempt) const {
  const CriPod* pod = find(key);
  if (pod == nullptr) return make_error(ErrorCode::kNotFound, "pod \"{}\" does not exist", key.text());
  if (container.contains('/') || container.starts_with('.'))
    return invalid("container", "\"{}\" cannot name a container", container);
  const std::filesystem::path file = log_in(pod->logs, container, attempt);
  std::error_code error;
  if (std::filesystem::exists(file, error)) return file.string();
  return make_error(ErrorCode::kNotFound, "container \"{}\" in pod \"{}\": the log of attempt {} is gone", container,
                    key.name, attempt);
}

bool CriPods::is_log_live(const std::string& path) const {
  for (const auto& [uid, pod] : pods_) {
    for (const auto& [name, container] : pod.containers) {
      if (container.running && path == log_in(pod.logs, name, container.attempt)) return true;
    }
  }
  return false;
}

std::optional<std::int32_t> CriPods::attempt_of(const std::string& container_id) const {
  for (const auto& [uid, pod] : pods_) {
    for (const auto& [name, container] : pod.containers)
      if (container.id == container_id) return container.attempt;
    for (const auto& [instance, id] : pod.ended)
      if (id == container_id) return instance.second;
  }
  return std::nullopt;
}

bool CriPods::wants_image(const ListedImage& image) const {
  const auto repository_of = [](const std::string& name) {
    const auto parsed = agent::parse_image_name(name);
    return parsed ? parsed->repository : std::string();
  };
  for (const auto& [uid, pod] : pods_) {
    for (const std::string& wanted : pod.starting.images()) {
      if (wanted == image.id) return true;
      const std::string repository = repository_of(wanted);
      if (std::ranges::any_of(image.names, [&](const auto& name) { return repository_of(name) == repository; }))
        return true;
    }
  }
  return false;
}

std::string CriPods::container_id(const std::string& id) const {
  return fmt::format("{}://{}", runtime_name_, id);
}

}  // namespace spillway::host
