#include "store/watch_registry.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace spillway::store {

WatchId WatchRegistry::add(std::string prefix, Revision after, Watcher& watcher) {
  watches_.emplace(++last_id_, Watch{std::move(prefix), after, &watcher});
  return last_id_;
}

void WatchRegistry::remove(WatchId id) {
  watches_.erase(id);
}

void WatchRegistry::go_live(WatchId id) {
  watches_.at(id).live = true;
}

bool WatchRegistry::has_late() const {
  return std::ranges::any_of(watches_, [](const auto& entry) { return !entry.second.live; });
}

Revision WatchRegistry::delivered_to(WatchId id) const {
  return watches_.at(id).delivered;
}

const std::string& WatchRegistry::prefix(WatchId id) const {
  return watches_.at(id).prefix;
}

std::vector<WatchId> WatchRegistry::ids() const {
  std::vector<WatchId> out;
  out.reserve(watches_.size());
  for (const auto& [id, watch] : watches_) out.push_back(id);
  return out;
}

void WatchRegistry::publish(const std::vector<Change>& changes) {
  if (changes.empty()) return;
  // Callbacks add and remove watches: walk over a copy of the ids and look each one up again.
  for (const WatchId id : ids()) {
    const auto found = watches_.find(id);
    if (found != watches_.end() && found->second.live) deliver(id, changes);
  }
}

void WatchRegistry::deliver(WatchId id, const std::vector<Change>& changes) {
  const auto found = watches_.find(id);
  if (found == watches_.end() || changes.empty()) return;
  Watch& watch = found->second;
  const auto concerns = [&](const Change& change) {
    return change.revision > watch.delivered && change.key.starts_with(watch.prefix);
  };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(changes, concerns));
  Watcher& watcher = *watch.watcher;
  if (count == changes.size()) {
    watch.delivered = changes.back().revision;
    watcher.on_changes(changes);
    return;
  }
  std::vector<Change> own;
  own.reserve(count);
  std::ranges::copy_if(changes, std::back_inserter(own), concerns);
  watch.delivered = std::max(watch.delivered, changes.back().revision);
  if (!own.empty()) watcher.on_changes(own);
}

void WatchRegistry::skip_to(WatchId id, Revision revision) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  found->second.delivered = std::max(found->second.delivered, revision);
  found->second.watcher->on_reached(revision);
}

void WatchRegistry::end(WatchId id, const Error& error) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  Watcher& watcher = *found->second.watcher;
  watches_.erase(found);
  watcher.on_watch_end(error);
}

void WatchRegistry::end_all(const Error& error) {
  for (const WatchId id : ids()) end(id, error);
}

}  // namespace spillway::store
