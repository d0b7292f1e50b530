#include "apiserver/read/pinned_objects.h"

namespace spillway::apiserver {

namespace {

constexpr std::size_t kAbsorbedAtOnce = 2'048;

}  // namespace

PinnedObjects::PinnedObjects(ResourceCache& cache, std::string prefix, std::string start_after, Passes passes)
    : cache_(cache),
      prefix_(std::move(prefix)),
      start_after_(std::move(start_after)),
      rewinds_(passes == Passes::kTwo),
      passed_(start_after_) {}

std::shared_ptr<PinnedObjects> PinnedObjects::make(ResourceCache& cache, store::Revision at, std::string prefix,
                                                   std::string start_after, Passes passes) {
  std::shared_ptr<PinnedObjects> pinned(
      new PinnedObjects(cache, std::move(prefix), std::move(start_after), passes));  // NOLINT: private
  pinned->history_ = cache.events_after(at);
  cache.pin(pinned);
  return pinned;
}

bool PinnedObjects::is_ahead(std::string_view key) const {
  return key.starts_with(prefix_) && key > (rewinds_ ? start_after_ : passed_);
}

void PinnedObjects::on_change(const std::string& key, const ObjectPtr& previous) {
  if (!is_ahead(key)) return;
  // The first change behind the revision holds the value at it; earlier changes are not all absorbed yet.
  if (absorbed_ < history_.size()) {
    news_.emplace_back(key, previous);
  } else {
    then_.try_emplace(key, previous);
  }
}

/// True: all changes since the revision have been absorbed.
bool PinnedObjects::absorb() {
  for (std::size_t count = 0; absorbed_ < history_.size(); ++absorbed_, ++count) {
    if (count == kAbsorbedAtOnce) return false;
    const CacheEvent& event = *history_[absorbed_];
    const std::string& key = event.object ? event.object->key : event.previous->key;
    if (is_ahead(key)) then_.try_emplace(key, event.previous);
  }
  history_ = {};
  absorbed_ = 0;
  for (auto& [key, previous] : news_) then_.try_emplace(std::move(key), std::move(previous));
  news_ = {};
  return true;
}

void PinnedObjects::pass(const std::string& key) {
  passed_ = key;
  if (rewinds_) return;
  while (!then_.empty() && then_.begin()->first <= key) then_.erase(then_.begin());
}

bool PinnedObjects::visit(const Visit& visit) {
  if (!absorb()) return false;
  const auto from = [this](const ObjectMap& map) {
    return passed_.empty() ? map.lower_bound(prefix_) : map.upper_bound(passed_);
  };
  const auto below = [this](const ObjectMap& map, ObjectMap::const_iterator at) {
    return at != map.end() && at->first.starts_with(prefix_);
  };
  const ObjectMap& now = cache_.objects();
  auto now_at = from(now);
  auto then_at = from(then_);
  const std::string* last = nullptr;
  bool all = false;
  for (;;) {
    const bool more_now = below(now, now_at);
    const bool more_then = below(then_, then_at);
    all = !more_now && !more_then;
    if (all) break;
    const bool was_other = more_then && (!more_now || then_at->first <= now_at->first);
    const auto& [key, object] = was_other ? *then_at : *now_at;
    if (object && !visit(object)) break;
    last = &key;
    if (was_other && more_now && then_at->first == now_at->first) ++now_at;
    was_other ? ++then_at : ++now_at;
  }
  if (last != nullptr) pass(std::string(*last));
  return all;
}

void PinnedObjects::rewind() {
  rewinds_ = false;
  passed_ = start_after_;
}

}  // namespace spillway::apiserver
