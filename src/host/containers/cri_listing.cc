#include "host/containers/cri_listing.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

using api::Json;

constexpr Duration kListInterval = seconds(1);

agent::ListedState container_state(const Json& container) {
  const std::int64_t state = number_in(container, {"state"});
  if (state == 1) return agent::ListedState::kRunning;
  return state == 2 ? agent::ListedState::kExited : agent::ListedState::kUnknown;
}

/// The containers of a pod that a list shows as ended; all, if their state could not be read last time.
std::set<std::string> ended_in(const CriPod& pod, const std::vector<agent::LifecycleEvent>& events) {
  std::set<std::string> ended;
  for (const auto& [name, container] : pod.containers)
    if (events.empty()) ended.insert(name);
  for (const agent::LifecycleEvent& event : events) {
    if (event.kind != agent::LifecycleEvent::Kind::kDied && event.kind != agent::LifecycleEvent::Kind::kRemoved)
      continue;
    const auto found =
        std::ranges::find_if(pod.containers, [&](const auto& each) { return each.second.id == event.id; });
    if (found != pod.containers.end()) ended.insert(found->first);
  }
  return ended;
}

}  // namespace

void CriListing::start() {
  const Instant began = host_.loop.now().mono;
  host_.calls.call("ListPodSandbox", host_.owner.list_request(), kRuntimeCallMax,
                   [this, began](Result<Json> sandboxes) { on_sandboxes(began, std::move(sandboxes)); });
}

void CriListing::on_sandboxes(Instant began, Result<Json> sandboxes) {
  if (!sandboxes) return list_again(began);
  host_.calls.call("ListContainers", host_.owner.list_request(), kRuntimeCallMax,
                   [this, began, sandboxes = *std::move(sandboxes)](const Result<Json>& containers) {
                     on_containers(began, sandboxes, containers);
                   });
}

void CriListing::on_containers(Instant began, const Json& sandboxes, const Result<Json>& containers) {
  if (containers) {
    means_.takeover.start(sandboxes, *containers);
    remove_strays(sandboxes, *containers);
    find_ends(sandboxes, *containers);
    means_.sandboxes.doubt(sandboxes, began);
  }
  means_.status.report();
  list_again(began);
}

void CriListing::list_again(Instant began) {
  host_.loop.at(std::max(began + kListInterval, host_.loop.now().mono), alive_.guard([this] { start(); }));
}

std::map<std::string, agent::ListedPod> CriListing::listed_pods(const Json& sandboxes, const Json& containers) const {
  std::map<std::string, std::string> uid_of;
  std::map<std::string, agent::ListedPod> listed;
  for (const Json& each : list_in(sandboxes, "items")) {
    const std::string uid(each.string_at({"metadata", "uid"}));
    if (pods_.find(uid) == nullptr) continue;
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
  return listed;
}

void CriListing::find_ends(const Json& sandboxes, const Json& containers) {
  auto listed = listed_pods(sandboxes, containers);
  if (const std::size_t again = means_.records.to_inspect().size(); again > 0)
    host_.log.debug("resyncing pods", {{"pods", static_cast<std::uint64_t>(again)}});
  for (const auto& [uid, events] : means_.records.on_list(std::move(listed), host_.loop.now().mono)) {
    means_.records.on_inspected(uid, true);
    const CriPod* pod = pods_.find(uid);
    if (pod == nullptr) continue;
    for (const std::string& name : ended_in(*pod, events)) means_.container_ends.inspect(uid, name);
  }
}

/// Removes sandboxes and containers that the runtime created after their requester had gone, or after a start was given
/// up.
void CriListing::remove_strays(const Json& sandboxes, const Json& containers) {
  if (host_.owner.is_empty() || !pods_.is_complete() || pods_.is_closing()) return;
  std::map<std::string, const CriPod*> pod_of;
  for (const Json& each : list_in(sandboxes, "items")) {
    const std::string id(each.string_at({"id"}));
    const CriPod* pod = pods_.find(std::string(each.string_at({"metadata", "uid"})));
    const bool known = pod != nullptr && (pod->sandbox == id || pod->old_sandboxes.contains(id) ||
                                          pod->asks_for_sandbox || pod->removing);
    known ? void(pod_of[id] = pod) : remove_stray(id, true);
  }
  for (const Json& each : list_in(containers, "containers")) {
    const std::string id(each.string_at({"id"}));
    const auto found = pod_of.find(std::string(each.string_at({"pod_sandbox_id"})));
    if (found == pod_of.end() || found->second->removing) continue;
    const CriPod& pod = *found->second;
    const bool known = pod.starting.contains(std::string(each.string_at({"metadata", "name"}))) ||
                       std::ranges::any_of(pod.containers, [&](const auto& entry) { return entry.second.id == id; }) ||
                       std::ranges::any_of(pod.ended, [&](const auto& entry) { return entry.second == id; });
    if (!known) remove_stray(id, false);
  }
}

void CriListing::remove_stray(const std::string& id, bool is_sandbox) {
  if (!strays_.insert(id).second) return;
  host_.log.info("an orphan is removed from the runtime", {{"id", id}});
  const auto done = [this, id](const Result<Json>& /*removed*/) { strays_.erase(id); };
  if (!is_sandbox)
    return host_.calls.call("RemoveContainer", Json::object({{"container_id", id}}), kRuntimeCallMax, done);
  host_.calls.call("StopPodSandbox", sandbox_request(id), kRuntimeCallMax,
                   [this, id, done](const Result<Json>& /*stopped*/) {
                     host_.calls.call("RemovePodSandbox", sandbox_request(id), kRuntimeCallMax, done);
                   });
}

}  // namespace spillway::host
