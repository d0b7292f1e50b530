#include "host/containers/cri_takeover.h"

#include "agent/contract/log_paths.h"
#include "host/containers/cri_sandboxes.h"
#include "host/logs/logged_attempts.h"
#include "host/pods/pod_mounts.h"
#include "host/pods/termination_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;
using api::Json;

constexpr std::int64_t kSandboxReady = 0;      // PodSandboxState
constexpr std::int64_t kContainerRunning = 1;  // ContainerState
constexpr std::int64_t kContainerExited = 2;
constexpr std::array kClasses = {api::QosClass::kGuaranteed, api::QosClass::kBurstable, api::QosClass::kBestEffort};

WallTime time_in(const Json& document, std::string_view member) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(nanoseconds(number_in(document, {member}))));
}

std::int32_t attempt_in(const Json& item) {
  return static_cast<std::int32_t>(number_in(item, {"metadata", "attempt"}));
}

bool is_message_from_logs(const Json& status) {
  return status.string_at({"annotations", "io.kubernetes.container.terminationMessagePolicy"}) ==
         "FallbackToLogsOnError";
}

std::string plain_id(const std::string& container_id) {
  return container_id.substr(container_id.find("://") + 3);
}

std::string termination_log(const std::string& directory, const std::string& name, std::int32_t attempt) {
  return fmt::format("{}/_ends/{}/{:08x}", directory, name, attempt);
}

}  // namespace

struct CriTakeover::Inventory {
  struct Item {
    agent::FoundPod found;
    CriPod pod;
  };

  std::map<std::string, Item> pods;         // by uid
  std::map<std::string, std::string> uids;  // pod uids by sandbox id
  std::set<std::string> from_logs;          // ids of containers whose termination message may be in their log
  std::size_t waiting = 0;                  // answers
  bool incomplete = false;                  // something could not be read: the next list begins anew
};

void CriTakeover::start(const Json& sandboxes, const Json& containers) {
  if (state_ != State::kNotTaken) return;
  state_ = State::kAsking;
  const auto all = std::make_shared<Inventory>();
  all->waiting = 1;
  if (!pods_.has_runtime_name()) {
    ask_name(all);
  } else if (!host_.owner.is_empty()) {
    for (const Json& each : list_in(sandboxes, "items")) inspect_sandbox(all, each);
    for (const Json& each : list_in(containers, "containers")) inspect_container(all, each);
  }
  release(all);
}

/// Ids of containers have the runtime's name: without it nothing can be reported.
void CriTakeover::ask_name(const InventoryPtr& all) {
  all->incomplete = true;
  ask(all, "Version", Json::object(), [this](const Json& answer) {
    pods_.set_runtime_name(std::string(answer.string_at({"runtime_name"})));
    means_.status.set_version(pods_.container_id(std::string(answer.string_at({"runtime_version"}))));
  });
}

/// Takes over one sandbox. Of several sandboxes of a pod, the newest counts if it is ready.
void CriTakeover::inspect_sandbox(const InventoryPtr& all, const Json& sandbox) {
  const std::string uid(sandbox.string_at({"metadata", "uid"}));
  const std::string id(sandbox.string_at({"id"}));
  all->uids[id] = uid;
  auto& [found, pod] = all->pods[uid];
  found.uid = uid;
  pod.command.pod = {std::string(sandbox.string_at({"metadata", "namespace"})),
                     std::string(sandbox.string_at({"metadata", "name"}))};
  const std::int32_t attempt = attempt_in(sandbox);
  const bool ready = number_in(sandbox, {"state"}) == kSandboxReady;
  if (!ready || (!pod.sandbox.empty() && attempt < pod.sandbox_attempt)) {
    pod.old_sandboxes.insert(id);
    pod.lost_sandboxes.insert(id);
    if (pod.sandbox.empty()) pod.sandbox_attempt = std::max(pod.sandbox_attempt, attempt + 1);
    return;
  }
  if (!pod.sandbox.empty()) pod.old_sandboxes.insert(pod.sandbox);
  pod.sandbox = id;
  pod.sandbox_attempt = attempt;
  pod.created = time_in(sandbox, "created_at");
  found.has_sandbox = true;
  found.handler = sandbox.string_at({"runtime_handler"});
  ask(all, "PodSandboxStatus", sandbox_request(id), [all, uid, id](const Json& answer) {
    auto& [known, same] = all->pods[uid];
    const Json* status = answer.find("status");
    if (same.sandbox == id && status != nullptr) known.ips = sandbox_addresses(*status);
  });
}

/// A container that was made and has not begun is made again. Containers in a sandbox that no longer counts are ended
/// first.
void CriTakeover::inspect_container(const InventoryPtr& all, const Json& container) {
  const std::string id(container.string_at({"id"}));
  const std::string sandbox(container.string_at({"pod_sandbox_id"}));
  const Json request = Json::object({{"container_id", id}});
  const auto owner = all->uids.find(sandbox);
  const std::int64_t state = number_in(container, {"state"});
  const bool runs = state == kContainerRunning;
  if (owner == all->uids.end() || (!runs && state != kContainerExited))
    return ask(all, "RemoveContainer", request, [](const Json&) {});
  if (runs && all->pods[owner->second].pod.sandbox != sandbox) {
    all->incomplete = true;
    return ask(all, "StopPodSandbox", sandbox_request(sandbox), [](const Json&) {});
  }
  ask(all, "ContainerStatus", request, [this, all, uid = owner->second](const Json& answer) {
    if (const Json* status = answer.find("status")) on_container(*all, uid, *status);
  });
}

void CriTakeover::on_container(Inventory& all, const std::string& uid, const Json& status) const {
  auto& [found, pod] = all.pods[uid];
  agent::FoundContainer made;
  made.name = status.string_at({"metadata", "name"});
  made.attempt = attempt_in(status);
  made.container_id = pods_.container_id(std::string(status.string_at({"id"})));
  made.image = status.string_at({"image", "user_specified_image"});
  if (made.image.empty()) made.image = status.string_at({"image", "image"});
  made.image_id = status.string_at({"image_ref"});
  made.hash = status.string_at({"annotations", "io.kubernetes.container.hash"});
  made.started_at = time_in(status, "started_at");
  if (number_in(status, {"state"}) != kContainerRunning) made.ended = end_of(made, pod, uid, status);
  if (is_message_from_logs(status)) all.from_logs.insert(made.container_id);
  found.containers.push_back(std::move(made));
}

api::ContainerState::Terminated CriTakeover::end_of(const agent::FoundContainer& container, const CriPod& pod,
                                                    const std::string& uid, const Json& status) const {
  const std::string folder = agent::pod_log_directory(host_.options.state_dir + "/pods", pod.command.pod, uid);
  const std::string logs = means_.log_folders.folder_of(pod.command.pod, uid, folder);
  api::ContainerState::Terminated ended;
  ended.exit_code = static_cast<std::int32_t>(number_in(status, {"exit_code"}));
  ended.reason = status.string_at({"reason"});
  if (ended.reason.empty()) ended.reason = ended.exit_code == 0 ? "Completed" : "Error";
  ended.message = read_termination_message({.message_file = termination_log(folder, container.name, container.attempt),
                                            .log = log_in(logs, container.name, container.attempt),
                                            .from_logs = is_message_from_logs(status),
                                            .exit_code = ended.exit_code,
                                            .reason = std::string(status.string_at({"reason"})),
                                            .message = std::string(status.string_at({"message"}))});
  ended.started_at = container.started_at;
  ended.finished_at = time_in(status, "finished_at");
  ended.container_id = container.container_id;
  return ended;
}

/// Answers of an item that is gone by then change nothing.
void CriTakeover::ask(const InventoryPtr& all, std::string_view method, Json request,
                      std::function<void(const Json&)> then) {
  ++all->waiting;
  host_.calls.call(method, std::move(request), kRuntimeCallMax,
                   [this, all, then = std::move(then)](const Result<Json>& answer) {
                     if (answer) then(*answer);
                     if (!answer && answer.error().code != ErrorCode::kNotFound) all->incomplete = true;
                     release(all);
                   });
}

void CriTakeover::release(const InventoryPtr& all) {
  if (--all->waiting > 0) return;
  state_ = all->incomplete ? State::kNotTaken : State::kDone;
  if (all->incomplete) return;
  pods_.set_complete();
  take_over(*all);
}

void CriTakeover::take_over(Inventory& all) {
  // Pods that the runtime does not have: they have no sandbox yet, or it has been removed.
  find_cgroups(all);
  find_directories(all);
  const std::vector<std::string> mounts = mounts_of_pods(host_.options.state_dir);
  agent::PodsFound event;
  std::size_t running = 0;
  for (auto& [uid, item] : all.pods) {
    auto& [found, pod] = item;
    found.uid = uid;
    found.after_logs = pod.logs.empty() ? decltype(found.after_logs)() : attempts_after_logs(pod.logs);
    pod.command.uid = uid;
    adopt_volumes(pod, mounts);
    std::ranges::sort(found.containers, [](const agent::FoundContainer& a, const agent::FoundContainer& b) {
      return std::tie(a.name, b.attempt) < std::tie(b.name, a.attempt);
    });
    adopt_containers(all, found, pod);
    if (pod.created == WallTime()) pod.created = host_.loop.now().wall;
    running += pod.containers.size();
    event.pods.push_back(found);
    pods_.all().insert_or_assign(uid, std::move(pod));
  }
  if (!event.pods.empty())
    host_.log.info("pods of an earlier process found", {{"pods", static_cast<std::uint64_t>(event.pods.size())},
                                                        {"running", static_cast<std::uint64_t>(running)}});
  host_.events.emit(std::move(event));
  host_.events.change_targets();
  watch_containers();
}

void CriTakeover::find_cgroups(Inventory& all) const {
  for (const api::QosClass qos : kClasses) {
    const CgroupDir& parent = host_.slice.parent_of(qos);
    const auto children = parent.children();
    if (!children) continue;
    for (const std::string& name : *children) {
      const auto uid = host_.slice.uid_of_child(qos, name);
      if (!uid) continue;
      CriPod& pod = all.pods[*uid].pod;
      pod.command.qos = qos;
      if (auto cgroup = parent.create_child(name)) pod.cgroup = *std::move(cgroup);
    }
  }
}

void CriTakeover::find_directories(Inventory& all) const {
  std::error_code error;
  const fs::path folder = fs::path(host_.options.state_dir) / "pods";
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename().string();
    const std::size_t first = name.find('_');
    const std::size_t last = name.rfind('_');
    if (first == std::string::npos || first == last) continue;
    const std::string uid(agent::uid_of_log_directory(name));
    CriPod& pod = all.pods[uid].pod;
    pod.command.pod = {name.substr(0, first), name.substr(first + 1, last - first - 1)};
    pod.directory = fmt::format("{}/{}", folder.string(), name);
    pod.logs = means_.log_folders.folder_of(pod.command.pod, uid, pod.directory);
  }
}

void CriTakeover::adopt_volumes(CriPod& pod, const std::vector<std::string>& mounts) {
  if (pod.directory.empty()) return;
  VolumeSetOptions volumes;
  volumes.directory = pod.directory + "/_volumes";
  volumes.kept = true;
  std::ranges::copy_if(mounts, std::back_inserter(volumes.mounts),
                       [&](const std::string& each) { return each.starts_with(pod.directory + "/"); });
  pod.volumes = std::make_shared<VolumeSet>(std::move(volumes));
}

/// `found`: the newest attempt of a container comes first.
void CriTakeover::adopt_containers(const Inventory& all, const agent::FoundPod& found, CriPod& pod) const {
  for (const agent::FoundContainer& each : found.containers) {
    const std::string id = plain_id(each.container_id);
    if (each.ended || pod.containers.contains(each.name)) {
      pod.ended[{each.name, each.attempt}] = id;
      continue;
    }
    CriContainer container;
    container.id = id;
    container.attempt = each.attempt;
    container.running = true;
    container.started_at = each.started_at;
    container.termination_log = termination_log(pod.directory, each.name, each.attempt);
    container.message_from_logs = all.from_logs.contains(each.container_id);
    if (pod.cgroup) means_.cgroups.find(pod, each.name, container);
    pod.containers.insert_or_assign(each.name, std::move(container));
  }
}

void CriTakeover::watch_containers() {
  for (const auto& [uid, pod] : pods_.all())
    for (const auto& [name, container] : pod.containers) means_.container_ends.watch(uid, name);
}

}  // namespace spillway::host
