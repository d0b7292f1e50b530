// Finds the pods that earlier processes of this node left: in the runtime, below the node's cgroup, on disk. They are
// listed once, as soon as the runtime answers, and reported as one PodsFound.
#include "agent/contract/log_paths.h"
#include "host/kernel/kernel_file.h"
#include "host/logs/logged_attempts.h"
#include "host/pods/cri_runtime.h"
#include "host/pods/termination_message.h"
#include "host/volumes/mount_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
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

}  // namespace

struct CriRuntime::Inventory {
  struct Item {
    agent::FoundPod found;
    Pod pod;
  };

  std::map<std::string, Item> pods;         // by uid
  std::map<std::string, std::string> uids;  // pod uids by sandbox id
  std::set<std::string> from_logs;          // ids of containers whose termination message may be in their log
  std::size_t waiting = 0;                  // answers
  bool incomplete = false;                  // something could not be read: the next list begins anew
};

/// Answers of an item that is gone by then change nothing.
void CriRuntime::ask_about(const std::shared_ptr<Inventory>& all, std::string_view method, Json request,
                           std::function<void(const Json&)> then) {
  ++all->waiting;
  call(method, std::move(request), kRuntimeCallMax, [this, all, then = std::move(then)](Result<Json> answer) {
    if (answer) {
      then(*answer);
    } else if (answer.error().code != ErrorCode::kNotFound) {
      all->incomplete = true;
    }
    release(all);
  });
}

void CriRuntime::release(const std::shared_ptr<Inventory>& all) {
  if (--all->waiting > 0) return;
  looked_around_ = all->incomplete ? LookedAround::kNot : LookedAround::kDone;
  if (!all->incomplete) take_over(*all);
}

void CriRuntime::look_around(const Json& sandboxes, const Json& containers) {
  looked_around_ = LookedAround::kAsking;
  const auto all = std::make_shared<Inventory>();
  all->waiting = 1;
  if (options_.runtime_name.empty()) {
    all->incomplete = true;  // its id is not known yet
    ask_about(all, "Version", Json::object(), [this](const Json& answer) {
      options_.runtime_name = answer.string_at({"runtime_name"});
      version_ = fmt::format("{}://{}", options_.runtime_name, answer.string_at({"runtime_version"}));
      report_runtime();
    });
  } else if (!options_.owner.empty()) {
    for (const Json& each : list_in(sandboxes, "items")) look_at_sandbox(all, each);
    for (const Json& each : list_in(containers, "containers")) look_at_container(all, each);
  }
  release(all);
}

/// Takes over one sandbox. Of several sandboxes of a pod, the newest counts if it is ready.
void CriRuntime::look_at_sandbox(const std::shared_ptr<Inventory>& all, const Json& sandbox) {
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
  ask_about(all, "PodSandboxStatus", Json::object({{"pod_sandbox_id", id}}), [all, uid, id](const Json& answer) {
    auto& [known, same] = all->pods[uid];
    const Json* status = answer.find("status");
    if (same.sandbox == id && status != nullptr) known.ips = addresses_in(*status);
  });
}

/// A container that was made and has not begun is made again. Containers in a sandbox that no longer counts are ended
/// first.
void CriRuntime::look_at_container(const std::shared_ptr<Inventory>& all, const Json& container) {
  const std::string id(container.string_at({"id"}));
  const std::string sandbox(container.string_at({"pod_sandbox_id"}));
  const Json request = Json::object({{"container_id", id}});
  const auto owner = all->uids.find(sandbox);
  const std::int64_t state = number_in(container, {"state"});
  const bool runs = state == kContainerRunning;
  if (owner == all->uids.end() || (!runs && state != kContainerExited))
    return ask_about(all, "RemoveContainer", request, [](const Json&) {});
  if (runs && all->pods[owner->second].pod.sandbox != sandbox) {
    all->incomplete = true;
    return ask_about(all, "StopPodSandbox", Json::object({{"pod_sandbox_id", sandbox}}), [](const Json&) {});
  }
  ask_about(all, "ContainerStatus", request, [this, all, uid = owner->second](const Json& answer) {
    const Json* status = answer.find("status");
    if (status == nullptr) return;
    auto& [found, pod] = all->pods[uid];
    agent::FoundContainer made;
    made.name = status->string_at({"metadata", "name"});
    made.attempt = attempt_in(*status);
    made.container_id = fmt::format("{}://{}", options_.runtime_name, status->string_at({"id"}));
    made.image = status->string_at({"image", "user_specified_image"});
    if (made.image.empty()) made.image = status->string_at({"image", "image"});
    made.image_id = status->string_at({"image_ref"});
    made.hash = status->string_at({"annotations", "io.kubernetes.container.hash"});
    made.started_at = time_in(*status, "started_at");
    if (number_in(*status, {"state"}) != kContainerRunning) {
      const std::string folder = agent::pod_log_directory(options_.state_dir + "/pods", pod.command.pod, uid);
      api::ContainerState::Terminated& ended = made.ended.emplace();
      ended.exit_code = static_cast<std::int32_t>(number_in(*status, {"exit_code"}));
      ended.reason = status->string_at({"reason"});
      if (ended.reason.empty()) ended.reason = ended.exit_code == 0 ? "Completed" : "Error";
      ended.message = read_termination_message(
          {.message_file = fmt::format("{}/_ends/{}/{:08x}", folder, made.name, made.attempt),
           .log = log_in(log_folders_.folder_of(pod.command.pod, uid, folder), made.name, made.attempt),
           .from_logs = is_message_from_logs(*status),
           .exit_code = ended.exit_code,
           .reason = std::string(status->string_at({"reason"})),
           .message = std::string(status->string_at({"message"}))});
      ended.started_at = made.started_at;
      ended.finished_at = time_in(*status, "finished_at");
      ended.container_id = made.container_id;
    }
    if (is_message_from_logs(*status)) all->from_logs.insert(made.container_id);
    found.containers.push_back(std::move(made));
  });
}

/// Adds pods that the runtime does not have: they have no sandbox yet, or it has been removed.
void CriRuntime::find_remains(Inventory& all) const {
  for (const api::QosClass qos : kClasses) {
    const auto children = slice_.parent_of(qos).children();
    if (!children) continue;
    for (const std::string& name : *children) {
      const auto uid = slice_.uid_of_child(qos, name);
      if (!uid) continue;
      auto& [found, pod] = all.pods[*uid];
      pod.command.qos = qos;
      if (auto cgroup = slice_.parent_of(qos).create_child(name)) pod.cgroup = *std::move(cgroup);
    }
  }
  std::error_code error;
  const fs::path folder = fs::path(options_.state_dir) / "pods";
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename().string();
    const std::size_t first = name.find('_');
    const std::size_t last = name.rfind('_');
    if (first == std::string::npos || first == last) continue;
    const std::string uid(agent::uid_of_log_directory(name));
    auto& [found, pod] = all.pods[uid];
    pod.command.pod = {name.substr(0, first), name.substr(first + 1, last - first - 1)};
    pod.directory = fmt::format("{}/{}", folder.string(), name);
    pod.logs = log_folders_.folder_of(pod.command.pod, uid, pod.directory);
  }
}

/// Below the directory of pods, as paths below the state directory as it was given.
std::vector<std::string> CriRuntime::mounts_of_pods() const {
  std::error_code error;
  const std::string given = options_.state_dir + "/pods/";
  const std::string real = fs::canonical(given, error).string() + "/";
  const auto text = read_file("/proc/self/mountinfo");
  if (error || !text) return {};
  return mounts_below(mount_points(*text), real, given);
}

void CriRuntime::adopt(Pod& pod, const std::vector<std::string>& mounts) {
  if (pod.directory.empty()) return;
  VolumeSetOptions volumes;
  volumes.directory = pod.directory + "/_volumes";
  volumes.kept = true;
  std::ranges::copy_if(mounts, std::back_inserter(volumes.mounts),
                       [&](const std::string& each) { return each.starts_with(pod.directory + "/"); });
  pod.volumes = std::make_shared<VolumeSet>(std::move(volumes));
}

void CriRuntime::take_over(Inventory& all) {
  find_remains(all);
  const std::vector<std::string> mounts = mounts_of_pods();
  agent::PodsFound event;
  std::vector<std::pair<std::string, std::string>> running;
  for (auto& [uid, item] : all.pods) {
    auto& [found, pod] = item;
    found.uid = uid;
    found.after_logs = pod.logs.empty() ? decltype(found.after_logs)() : attempts_after_logs(pod.logs);
    pod.command.uid = uid;
    adopt(pod, mounts);
    std::ranges::sort(found.containers, [](const agent::FoundContainer& a, const agent::FoundContainer& b) {
      return std::tie(a.name, b.attempt) < std::tie(b.name, a.attempt);
    });
    for (const agent::FoundContainer& each : found.containers) {
      const std::string id = plain_id(each.container_id);
      if (each.ended || pod.containers.contains(each.name)) {
        pod.ended[{each.name, each.attempt}] = id;
        continue;
      }
      Container container;
      container.id = id;
      container.attempt = each.attempt;
      container.running = true;
      container.started_at = each.started_at;
      container.termination_log = fmt::format("{}/_ends/{}/{:08x}", pod.directory, each.name, each.attempt);
      container.message_from_logs = all.from_logs.contains(each.container_id);
      if (pod.cgroup) {
        if (auto cgroup = open_container(pod, id)) container.cgroup = *std::move(cgroup);
      }
      if (container.cgroup) container.handle = make_handle(container.cgroup, each.name);
      pod.containers.insert_or_assign(each.name, std::move(container));
      running.emplace_back(uid, each.name);
    }
    if (pod.created == WallTime()) pod.created = loop_.now().wall;
    event.pods.push_back(found);
    pods_.insert_or_assign(uid, std::move(pod));
  }
  if (!event.pods.empty())
    log_.info("pods of an earlier process found", {{"pods", static_cast<std::uint64_t>(event.pods.size())},
                                                   {"running", static_cast<std::uint64_t>(running.size())}});
  emit(std::move(event));
  if (targets_changed_) targets_changed_();
  for (const auto& [uid, name] : running) watch(uid, name);
}

}  // namespace spillway::host
