#include "agent/cri/lifecycle_events.h"

#include "api/text/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

using EventKind = LifecycleEvent::Kind;

std::optional<ListedState> state_in(const ListedPod* pod, const std::string& id) {
  if (pod == nullptr) return std::nullopt;
  for (const auto* list : {&pod->containers, &pod->sandboxes}) {
    const auto found = std::ranges::find(*list, id, &ListedPod::Item::id);
    if (found != list->end()) return found->state;
  }
  return std::nullopt;
}

std::vector<std::string> ids_of(const ListedPod* before, const ListedPod* after) {
  std::vector<std::string> ids;
  for (const ListedPod* pod : {before, after}) {
    if (pod == nullptr) continue;
    for (const auto* list : {&pod->containers, &pod->sandboxes})
      for (const ListedPod::Item& each : *list)
        if (std::ranges::find(ids, each.id) == ids.end()) ids.push_back(each.id);
  }
  return ids;
}

void add_events(const std::string& id, std::optional<ListedState> before, std::optional<ListedState> after,
                std::vector<LifecycleEvent>& events) {
  if (before == after) return;
  if (!after) {
    if (before != ListedState::kExited) events.push_back({EventKind::kDied, id});
    events.push_back({EventKind::kRemoved, id});
  } else if (*after == ListedState::kRunning) {
    events.push_back({EventKind::kStarted, id});
  } else {
    events.push_back({*after == ListedState::kExited ? EventKind::kDied : EventKind::kChanged, id});
  }
}

const ListedPod* find(const std::map<std::string, ListedPod>& pods, const std::string& uid) {
  const auto found = pods.find(uid);
  return found == pods.end() ? nullptr : &found->second;
}

}  // namespace

std::map<std::string, std::vector<LifecycleEvent>> LifecycleRecords::on_list(std::map<std::string, ListedPod> pods,
                                                                             Instant now) {
  listed_ = now;
  current_ = std::move(pods);
  std::set<std::string> uids;
  for (const auto* list : {&reported_, &current_})
    for (const auto& [uid, pod] : *list) uids.insert(uid);
  std::map<std::string, std::vector<LifecycleEvent>> all;
  for (const std::string& uid : uids) {
    const ListedPod* before = find(reported_, uid);
    const ListedPod* after = find(current_, uid);
    std::vector<LifecycleEvent> events;
    for (const std::string& id : ids_of(before, after))
      add_events(id, state_in(before, id), state_in(after, id), events);
    if (!events.empty()) all.emplace(uid, std::move(events));
  }
  for (const std::string& uid : std::exchange(to_inspect_, {})) all.try_emplace(uid);
  return all;
}

bool LifecycleRecords::is_gone(const std::string& uid) const {
  return !current_.contains(uid);
}

void LifecycleRecords::on_inspected(const std::string& uid, bool successful) {
  if (!successful) {
    to_inspect_.insert(uid);
    return;
  }
  to_inspect_.erase(uid);
  if (const ListedPod* pod = find(current_, uid)) {
    reported_[uid] = *pod;
  } else {
    reported_.erase(uid);
  }
}

std::optional<std::string> LifecycleRecords::problem(Instant now) const {
  if (!listed_) return "pleg has yet to be successful";
  const Duration age = now - *listed_;
  if (age <= kListedWithin) return std::nullopt;
  return fmt::format("pleg was last seen active {} ago; threshold is {}", api::format_duration(age),
                     api::format_duration(kListedWithin));
}

}  // namespace spillway::agent
