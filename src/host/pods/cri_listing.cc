// Lists the runtime's containers every second, its status, and its images.
#include "host/pods/cri_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace spillway::host {
namespace {

using api::Json;

constexpr Duration kListInterval = seconds(1);
constexpr Duration kStatusInterval = seconds(5);
constexpr Duration kImagesInterval = seconds(30);
constexpr Duration kDownAfter = seconds(30);

agent::ListedState container_state(const Json& container) {
  const std::int64_t state = number_in(container, {"state"});
  if (state == 1) return agent::ListedState::kRunning;
  return state == 2 ? agent::ListedState::kExited : agent::ListedState::kUnknown;
}

std::vector<std::string> strings_in(const Json& document, std::string_view member) {
  std::vector<std::string> made;
  for (const Json& each : list_in(document, member)) made.emplace_back(each.string_at({}));
  return made;
}

}  // namespace

/// In a runtime that others use too, lists only the containers of this node.
Json CriRuntime::filter() const {
  if (options_.owner.empty()) return Json::object();
  Json request = Json::object();
  request.make({"filter", "label_selector", kOwnerLabel}) = options_.owner;
  return request;
}

void CriRuntime::relist() {
  const Instant began = loop_.now().mono;
  const auto next = [this, alive = std::weak_ptr(alive_), began] {
    loop_.at(std::max(began + kListInterval, loop_.now().mono), [this, alive] {
      if (!alive.expired()) relist();
    });
  };
  call("ListPodSandbox", filter(), kRuntimeCallMax, [this, next, began](Result<Json> sandboxes) {
    if (!sandboxes) return next();
    call("ListContainers", filter(), kRuntimeCallMax,
         [this, next, began, sandboxes = *std::move(sandboxes)](Result<Json> containers) {
           if (containers) on_lists(sandboxes, *containers);
           if (containers) doubt_sandboxes(sandboxes, began);
           report_runtime();
           next();
         });
  });
}

void CriRuntime::on_lists(const Json& sandboxes, const Json& containers) {
  if (looked_around_ == LookedAround::kNot) look_around(sandboxes, containers);
  remove_strays(sandboxes, containers);
  std::map<std::string, std::string> uid_of;
  std::map<std::string, agent::ListedPod> listed;
  for (const Json& each : list_in(sandboxes, "items")) {
    const std::string uid(each.string_at({"metadata", "uid"}));
    if (!pods_.contains(uid)) continue;
    uid_of[std::string(each.string_at({"id"}))] = uid;
    const bool ready = number_in(each, {"state"}) == 0;
    listed[uid].sandboxes.push_back(
        {std::string(each.string_at({"id"})), ready ? agent::ListedState::kRunning : agent::ListedState::kExited});
  }
  for (const Json& each : list_in(containers, "containers")) {
    const auto uid = uid_of.find(std::string(each.string_at({"pod_sandbox_id"})));
    if (uid == uid_of.end()) continue;
    listed[uid->second].containers.push_back({std::string(each.string_at({"id"})), container_state(each)});
  }
  if (const std::size_t again = records_.to_inspect().size(); again > 0)
    log_.debug("resyncing pods", {{"pods", static_cast<std::uint64_t>(again)}});
  for (const auto& [uid, events] : records_.on_list(std::move(listed), loop_.now().mono)) {
    records_.on_inspected(uid, true);
    Pod* pod = find(uid);
    if (pod == nullptr) continue;
    std::set<std::string> ended;
    for (const auto& [name, container] : pod->containers)
      if (events.empty()) ended.insert(name);  // their state could not be read last time
    for (const agent::LifecycleEvent& event : events) {
      if (event.kind != agent::LifecycleEvent::Kind::kDied && event.kind != agent::LifecycleEvent::Kind::kRemoved)
        continue;
      const auto found =
          std::ranges::find_if(pod->containers, [&](const auto& each) { return each.second.id == event.id; });
      if (found != pod->containers.end()) ended.insert(found->first);
    }
    for (const std::string& name : ended) inspect(uid, name, kInspectFirst);
  }
}

/// A sandbox that a list does not show as ready is inspected once more before any action.
void CriRuntime::doubt_sandboxes(const Json& sandboxes, Instant listed) {
  if (looked_around_ != LookedAround::kDone || shutting_down_) return;
  std::set<std::string, std::less<>> ready;
  for (const Json& each : list_in(sandboxes, "items"))
    if (number_in(each, {"state"}) == 0) ready.emplace(each.string_at({"id"}));
  for (auto& [uid, pod] : pods_) {
    if (pod.sandbox.empty() || pod.stopping || pod.removing || pod.sandbox_since >= listed) continue;
    if (ready.contains(pod.sandbox) || std::exchange(pod.sandbox_doubted, true)) continue;
    call("PodSandboxStatus", Json::object({{"pod_sandbox_id", pod.sandbox}}), kRuntimeCallMax,
         [this, uid = uid, id = pod.sandbox](Result<Json> status) { on_doubted(uid, id, status); });
  }
}

void CriRuntime::on_doubted(const std::string& uid, const std::string& id, const Result<Json>& status) {
  Pod* pod = find(uid);
  if (pod == nullptr) return;
  pod->sandbox_doubted = false;
  if (pod->sandbox != id || pod->stopping || pod->removing) return;
  const bool gone = !status && status.error().code == ErrorCode::kNotFound;
  const Json* found = status ? status->find("status") : nullptr;
  if (!gone && (found == nullptr || number_in(*found, {"state"}) == 0)) return;  // ready, or of unknown state
  log_.info("the sandbox of a pod is not ready any more", {{"pod", pod->command.pod.text()}, {"id", id}});
  pod->old_sandboxes.insert(id);
  pod->lost_sandboxes.insert(id);
  pod->sandbox.clear();
  ++pod->sandbox_attempt;
  emit(agent::SandboxLost{uid});
  std::vector<std::string> names;
  for (const auto& [name, container] : pod->containers) names.push_back(name);
  for (const std::string& name : names) inspect(uid, name, kInspectFirst);
}

void CriRuntime::remove_stray(const std::string& id, bool is_sandbox) {
  if (!strays_.insert(id).second) return;
  log_.info("an orphan is removed from the runtime", {{"id", id}});
  const auto done = [this, id](Result<Json>) { strays_.erase(id); };
  if (!is_sandbox) return call("RemoveContainer", Json::object({{"container_id", id}}), kRuntimeCallMax, done);
  const Json request = Json::object({{"pod_sandbox_id", id}});
  call("StopPodSandbox", request, kRuntimeCallMax,
       [this, request, done](Result<Json>) { call("RemovePodSandbox", request, kRuntimeCallMax, done); });
}

/// Removes sandboxes and containers that the runtime created after their requester had gone, or after a start was given
/// up.
void CriRuntime::remove_strays(const Json& sandboxes, const Json& containers) {
  if (options_.owner.empty() || looked_around_ != LookedAround::kDone || shutting_down_) return;
  std::map<std::string, const Pod*> pod_of;
  for (const Json& each : list_in(sandboxes, "items")) {
    const std::string id(each.string_at({"id"}));
    const Pod* pod = find(std::string(each.string_at({"metadata", "uid"})));
    const bool known = pod != nullptr && (pod->sandbox == id || pod->old_sandboxes.contains(id) ||
                                          pod->asks_for_sandbox || pod->removing);
    known ? void(pod_of[id] = pod) : remove_stray(id, true);
  }
  for (const Json& each : list_in(containers, "containers")) {
    const std::string id(each.string_at({"id"}));
    const auto found = pod_of.find(std::string(each.string_at({"pod_sandbox_id"})));
    if (found == pod_of.end() || found->second->removing) continue;
    const Pod& pod = *found->second;
    const bool known = pod.starting.contains(std::string(each.string_at({"metadata", "name"}))) ||
                       std::ranges::any_of(pod.containers, [&](const auto& entry) { return entry.second.id == id; }) ||
                       std::ranges::any_of(pod.ended, [&](const auto& entry) { return entry.second == id; });
    if (!known) remove_stray(id, false);
  }
}

void CriRuntime::ask_status() {
  call("Status", Json::object(), kStatusInterval, [this](Result<Json> answer) {
    if (answer) {
      status_at_ = loop_.now().mono;
      runtime_status_ = agent::runtime_status(*answer);
    }
    report_runtime();
    loop_.at(loop_.now().mono + kStatusInterval, [this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) ask_status();
    });
  });
}

void CriRuntime::ask_images() {
  call("ListImages", Json::object(), kRuntimeCallMax, [this](Result<Json> answer) {
    if (answer) {
      node_images_.clear();
      for (const Json& each : list_in(*answer, "images"))
        node_images_.push_back(
            {strings_in(each, "repo_digests"), strings_in(each, "repo_tags"), number_in(each, {"size"})});
      std::ranges::sort(node_images_, [](const agent::NodeImage& a, const agent::NodeImage& b) {
        return std::tie(b.size_bytes, a.repo_tags, a.repo_digests) <
               std::tie(a.size_bytes, b.repo_tags, b.repo_digests);
      });
      report_runtime();
    }
    loop_.at(loop_.now().mono + kImagesInterval, [this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) ask_images();
    });
  });
}

void CriRuntime::report_runtime() {
  const Instant now = loop_.now().mono;
  agent::RuntimeReported report{.problem = runtime_status_.problem,
                                .network_problem = runtime_status_.network_problem,
                                .images = node_images_,
                                .version = version_,
                                .handlers = runtime_status_.handlers,
                                .supplemental_groups_policy = runtime_status_.supplemental_groups_policy};
  if (!status_at_) {
    report.problem = "container runtime status check may not have completed yet";
  } else if (now - *status_at_ >= kDownAfter) {
    report.problem = "container runtime is down";
  } else if (report.problem.empty()) {
    if (const auto unhealthy = records_.problem(now)) report.problem = "PLEG is not healthy: " + *unhealthy;
  }
  if (reported_ == report) return;
  reported_ = report;
  emit(std::move(report));
}

}  // namespace spillway::host
