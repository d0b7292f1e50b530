#include "host/process/process_pods.h"

#include "base/file.h"
#include "host/cgroup/cgroup_limits.h"
#include "host/pods/pod_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::host {

namespace fs = std::filesystem;

bool ProcessPod::is_at_rest() const {
  const bool has_network = network == NetworkState::kAttached || network == NetworkState::kDetaching;
  return containers.empty() && !has_network;
}

std::string ProcessPod::log_path(const std::string& container, std::int32_t attempt) const {
  return fmt::format("{}/{}/{}.log", directory, container, attempt);
}

ProcessPod* ProcessPods::find(const std::string& uid) {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second;
}

bool ProcessPods::is_made_anew(const std::string& uid, const PodIdentity& identity) {
  if (identity == nullptr) return false;
  const ProcessPod* found = find(uid);
  return removals_.has_later(uid) || (found != nullptr && found->identity != identity);
}

const ProcessPod* ProcessPods::find(const api::PodKey& key) const {
  const ProcessPod* found = nullptr;
  for (const auto& [uid, pod] : pods_) {
    // A pod that was made anew lives beside the remains of its namesake.
    if (pod.command.pod == key && (found == nullptr || found->stopping)) found = &pod;
  }
  return found;
}

ContainerProcess* ProcessPods::find_container(const std::string& uid, const std::string& name) {
  ProcessPod* pod = find(uid);
  if (pod == nullptr) return nullptr;
  const auto found = pod->containers.find(name);
  return found == pod->containers.end() ? nullptr : found->second.get();
}

std::vector<api::PodKey> ProcessPods::keys() const {
  std::vector<api::PodKey> keys;
  keys.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) keys.push_back(pod.command.pod);
  return keys;
}

std::vector<agent::RunningPod> ProcessPods::running() const {
  std::vector<agent::RunningPod> all;
  for (const auto& [uid, pod] : pods_) {
    if (pod.broken || !pod.made || (pod.stopping && pod.is_at_rest())) continue;
    agent::RunningPod made{.uid = uid, .pod = pod.command.pod, .created = pod.created, .containers = {}};
    for (const auto& [name, container] : pod.containers)
      if (container->is_running()) made.containers.push_back(name);
    all.push_back(std::move(made));
  }
  return all;
}

std::shared_ptr<const ReactionTarget> ProcessPods::find_target(const std::string& uid) {
  ProcessPod* pod = find(uid);
  if (pod == nullptr || pod->broken || !pod->cgroup) return nullptr;
  if (!pod->target) {
    std::vector<std::shared_ptr<ContainerHandle>> handles;
    for (const auto& [name, container] : pod->containers)
      if (container->is_running()) handles.push_back(container->handle());
    pod->target =
        std::make_shared<const ReactionTarget>(slice_.parent_of(pod->command.qos), pod->cgroup, std::move(handles));
  }
  return pod->target;
}

void ProcessPods::change_target(ProcessPod& pod) {
  pod.target.reset();
  events_.change_targets();
}

std::vector<PodView> ProcessPods::views() const {
  std::vector<PodView> all;
  all.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) {
    if (pod.broken || !pod.cgroup) continue;
    PodView view{uid, pod.command.pod, &pod.cgroup, pod.work_folder(), {}, pod.created, pod.command.isolation.network,
                 {}};
    for (const std::string& name : pod.disk_volumes)
      if (pod.volumes)
        view.volumes.push_back({name, fmt::format("{}/kubernetes.io~empty-dir/{}", pod.volume_folder(), name)});
    for (const auto& [name, container] : pod.containers)
      if (container->is_running())
        view.containers.push_back({name, &container->cgroup(), container->log_size(), container->started_at()});
    all.push_back(std::move(view));
  }
  return all;
}

void ProcessPods::update_class_shares() const {
  std::vector<const agent::CreatePod*> commands;
  for (const auto& [uid, pod] : pods_) commands.push_back(&pod.command);
  for (const api::QosClass qos : {api::QosClass::kBurstable, api::QosClass::kBestEffort}) {
    ignored(apply_limits(slice_.parent_of(qos), class_limits(qos, commands, {})),
            "shares only weigh; the next pod sets them again");
  }
}

Result<std::string> ProcessPods::find_log(const api::PodKey& key, const std::string& container,
                                          std::int32_t attempt) const {
  const ProcessPod* pod = find(key);
  if (pod == nullptr) return make_error(ErrorCode::kNotFound, "pod \"{}\" does not exist", key.text());
  if (!is_plain_name(container)) return invalid("container", "\"{}\" cannot name a container", container);
  std::string file = pod->log_path(container, attempt);
  std::error_code error;
  if (fs::exists(file, error)) return file;
  return make_error(ErrorCode::kNotFound, "container \"{}\" in pod \"{}\": the log of attempt {} is gone", container,
                    key.name, attempt);
}

bool ProcessPods::is_log_live(const std::string& path) const {
  return std::ranges::any_of(pods_, [&](const auto& pod) {
    return std::ranges::any_of(pod.second.containers,
                               [&](const auto& container) { return container.second->log_path() == path; });
  });
}

}  // namespace spillway::host
