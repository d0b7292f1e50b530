#include "apiserver/expiry.h"

#include "api/meta.h"

#include <algorithm>

namespace spillway::apiserver {

namespace {

constexpr Duration kEventLife = hours(1);
constexpr Duration kSweepEvery = seconds(10);
constexpr Duration kCompactEvery = seconds(60);
constexpr Duration kHistoryAge = minutes(5);
constexpr std::uint64_t kRevisionsMin = 10'000;
constexpr std::uint64_t kRevisionsMax = 200'000;

/// The last sign of life an Event carries.
std::optional<WallTime> last_seen(const api::Json& event) {
  std::optional<WallTime> latest;
  const std::string_view texts[] = {event.string_at({"metadata", "creationTimestamp"}),
                                    event.string_at({"lastTimestamp"}), event.string_at({"eventTime"}),
                                    event.string_at({"series", "lastObservedTime"})};
  for (const std::string_view text : texts) {
    if (text.empty()) continue;
    if (const Result<WallTime> time = api::parse_time(text); time && (!latest || *time > *latest)) latest = *time;
  }
  return latest;
}

}  // namespace

EventExpiry::EventExpiry(Core& core, Remover& remover)
    : core_(core), remover_(remover), events_(core.cache.of(core.registry.get("events"))) {}

void EventExpiry::load() {
  loaded_ = true;
  for (const auto& [key, object] : events_.objects()) {
    const std::optional<WallTime> seen = last_seen(object->document());
    const Duration age = seen && *seen < core_.now.wall ? Duration(core_.now.wall - *seen) : Duration(0);
    expect(key, core_.now.mono + std::max(Duration(0), kEventLife - age));
  }
  arm();
}

void EventExpiry::expect(const std::string& key, Instant due) {
  const auto [entry, is_new] = due_by_key_.try_emplace(key, due);
  if (!is_new) {
    due_.erase({entry->second, key});
    entry->second = due;
  }
  due_.emplace(due, key);
}

void EventExpiry::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (!loaded_ || &cache != &events_) return;
  if (event->object) {
    expect(event->object->key, event->at + kEventLife);
    arm();
  } else if (const auto entry = due_by_key_.find(event->previous->key); entry != due_by_key_.end()) {
    due_.erase({entry->second, entry->first});
    due_by_key_.erase(entry);
  }
}

void EventExpiry::arm() {
  if (timer_ || due_.empty()) return;
  // Several at a time: an Event lives up to one sweep longer.
  timer_ = core_.timers.at(std::max(due_.begin()->first, core_.now.mono) + kSweepEvery, [this] {
    timer_.reset();
    sweep();
  });
}

void EventExpiry::sweep() {
  while (!due_.empty() && due_.begin()->first <= core_.now.mono && removing_ < kCollectorWritesMax) {
    const std::string key = due_.begin()->second;
    due_.erase(due_.begin());
    due_by_key_.erase(key);
    const ObjectPtr event = events_.find(key);
    if (!event) continue;
    ++removing_;
    DeleteOptions options;
    options.resource_version = std::to_string(event->revision.number());
    remover_.remove({&events_.resource(), event->ns, event->name, options},
                    [this, key](api::StatusResult<Removed> result) {
                      --removing_;
                      // A store that is busy is asked again; an Event that was written meanwhile has a new term.
                      if (!result && result.error().code >= 429) expect(key, core_.now.mono);
                      arm();
                    });
  }
  arm();
}

void Compaction::start() {
  tick();
}

void Compaction::tick() {
  const store::Revision present = core_.store.revision();
  const Instant now = core_.now.mono;
  samples_.emplace_back(now, present);
  store::Revision target;
  while (samples_.size() > 1 && samples_.front().first + kHistoryAge <= now) {
    target = samples_.front().second;
    samples_.pop_front();
  }
  if (present.number() > kRevisionsMax) target = std::max(target, store::Revision(present.number() - kRevisionsMax));
  const std::uint64_t newest = present.number() > kRevisionsMin ? present.number() - kRevisionsMin : 0;
  target = std::min(target, store::Revision(newest));
  if (target > core_.store.compacted()) {
    core_.store.compact(target, [this](Result<store::Revision> result) {
      if (!result) core_.log.warning("compaction failed", {{"error", result.error().text()}});
    });
  }
  core_.timers.at(now + kCompactEvery, [this] { tick(); });
}

}  // namespace spillway::apiserver
