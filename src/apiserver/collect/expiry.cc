#include "apiserver/collect/expiry.h"

#include "api/object/meta.h"
#include "api/text/base64.h"
#include "api/text/time_text.h"

#include <algorithm>

namespace spillway::apiserver {

namespace {

constexpr Duration kStoreIsLate = minutes(10);
constexpr Duration kDecidedRequestLife = hours(1);
constexpr Duration kOpenRequestLife = hours(24);
constexpr Duration kTokenCheckEvery = hours(24);
constexpr Duration kSweepEvery = seconds(10);
constexpr Duration kCompactEvery = seconds(60);
constexpr Duration kAgeOfNoHistory = seconds(30);  // for a store whose resources keep no history
constexpr std::uint64_t kRevisionsMin = 10'000;
constexpr std::uint64_t kRevisionsMax = 200'000;

std::optional<WallTime> latest_of(std::initializer_list<std::string_view> texts) {
  std::optional<WallTime> latest;
  for (const std::string_view text : texts) {
    if (text.empty()) continue;
    if (const Result<WallTime> time = api::parse_time(text); time && (!latest || *time > *latest)) latest = *time;
  }
  return latest;
}

std::optional<WallTime> event_seen(const api::Json& event) {
  return latest_of({event.string_at({"metadata", "creationTimestamp"}), event.string_at({"lastTimestamp"}),
                    event.string_at({"eventTime"}), event.string_at({"series", "lastObservedTime"})});
}

const api::Json::Array* conditions_of(const api::Json& request) {
  const api::Json* conditions = request.at({"status", "conditions"});
  return conditions == nullptr ? nullptr : conditions->if_array();
}

std::optional<Duration> life_of_request(const api::Json& request, WallTime) {
  if (!request.string_at({"status", "certificate"}).empty()) return kDecidedRequestLife;
  const api::Json::Array* conditions = conditions_of(request);
  const bool refused = conditions != nullptr && std::ranges::any_of(*conditions, [](const api::Json& one) {
                         return one.string_at({"type"}) == "Denied" || one.string_at({"type"}) == "Failed";
                       });
  return refused ? kDecidedRequestLife : kOpenRequestLife;
}

std::optional<WallTime> request_seen(const api::Json& request) {
  std::optional<WallTime> latest = latest_of({request.string_at({"metadata", "creationTimestamp"})});
  const api::Json::Array* conditions = conditions_of(request);
  if (conditions == nullptr) return latest;
  for (const api::Json& one : *conditions) {
    const std::optional<WallTime> updated = latest_of({one.string_at({"lastUpdateTime"})});
    if (updated && (!latest || *updated > *latest)) latest = updated;
  }
  return latest;
}

std::optional<Duration> life_of_token(const api::Json& secret, WallTime now) {
  const bool is_token = secret.string_at({"metadata", "namespace"}) == "kube-system" &&
                        secret.string_at({"type"}) == "bootstrap.kubernetes.io/token";
  if (!is_token) return std::nullopt;
  const std::string expiration = api::decode_base64(secret.string_at({"data", "expiration"})).value_or("?");
  if (expiration.empty()) return std::nullopt;
  const Result<WallTime> time = api::parse_time(expiration);
  if (!time || *time <= now) return Duration{};
  return *time - now < kTokenCheckEvery ? Duration(*time - now) : kTokenCheckEvery;
}

std::optional<WallTime> now_seen(const api::Json&) {
  return std::nullopt;
}

}  // namespace

Expiry::Rule event_expiry(const Core& core) {
  const ResourceCache& events = core.cache.of(core.registry.get("events"));
  const Duration life = core.storage.event_ttl + (events.origin().store().expires_keys() ? kStoreIsLate : Duration());
  return {"events", [life](const api::Json&, WallTime) { return std::optional(life); }, event_seen};
}

const Expiry::Rule kRequestExpiry{"certificatesigningrequests.certificates.k8s.io", life_of_request, request_seen};
const Expiry::Rule kTokenExpiry{"secrets", life_of_token, now_seen, true};

Expiry::Expiry(Core& core, Remover& remover, const Rule& rule, Wanted wanted)
    : core_(core),
      remover_(remover),
      rule_(rule),
      wanted_(wanted),
      objects_(core.cache.of(core.registry.get(rule.plural))) {}

void Expiry::load() {
  due_.clear();
  due_by_key_.clear();
  if (wanted_ == Wanted::kNo) return;
  for (const auto& [key, object] : objects_.objects()) {
    const api::Json document = object->document();
    const std::optional<WallTime> seen = rule_.last_seen(document);
    const Duration age = seen && *seen < core_.now.wall ? Duration(core_.now.wall - *seen) : Duration(0);
    if (const auto life = rule_.life(document, core_.now.wall))
      expect(key, core_.now.mono + std::max(Duration(0), *life - age));
  }
  arm();
}

void Expiry::expect(const std::string& key, Instant due) {
  const auto [entry, is_new] = due_by_key_.try_emplace(key, due);
  if (!is_new) {
    due_.erase({entry->second, key});
    entry->second = due;
  }
  due_.emplace(due, key);
}

void Expiry::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (wanted_ == Wanted::kNo || &cache != &objects_) return;
  const auto life = event->object ? rule_.life(event->object->document(), core_.now.wall) : std::nullopt;
  if (life) {
    expect(event->object->key, event->at + *life);
    arm();
  } else {
    forget(event->object ? event->object->key : event->previous->key);
  }
}

void Expiry::forget(const std::string& key) {
  const auto entry = due_by_key_.find(key);
  if (entry == due_by_key_.end()) return;
  due_.erase({entry->second, entry->first});
  due_by_key_.erase(entry);
}

void Expiry::arm() {
  if (due_.empty()) return;
  // Several at a time: an object lives up to one sweep longer.
  const Instant at = std::max(due_.begin()->first, core_.now.mono) + kSweepEvery;
  if (timer_ && armed_for_ <= at) return;
  if (timer_) core_.timers.cancel(*timer_);
  armed_for_ = at;
  timer_ = core_.timers.at(at, [this] {
    timer_.reset();
    sweep();
  });
}

void Expiry::sweep() {
  if (!acts()) return;
  while (!due_.empty() && due_.begin()->first <= core_.now.mono && removing_ < kCollectorWritesMax) {
    const std::string key = due_.begin()->second;
    due_.erase(due_.begin());
    due_by_key_.erase(key);
    const ObjectPtr object = objects_.find(key);
    if (!object) continue;
    const auto life = rule_.by_wall_clock ? rule_.life(object->document(), core_.now.wall) : std::nullopt;
    if (life && *life > Duration(0)) {
      expect(key, core_.now.mono + *life);
      continue;
    }
    ++removing_;
    DeleteOptions options;
    options.resource_version = std::to_string(object->revision.number());
    remover_.remove({&objects_.resource(), object->ns, object->name, options},
                    [this, key](const api::StatusResult<Removed>& result) { on_removed(key, result); });
  }
  arm();
}

/// A busy store is tried again; an object that was written meanwhile has a new term.
void Expiry::on_removed(const std::string& key, const api::StatusResult<Removed>& result) {
  --removing_;
  if (!result && result.error().code >= 429) expect(key, core_.now.mono);
  arm();
}

Compaction::Compaction(Core& core, Duration interval) : core_(core), interval_(interval) {
  for (const auto& origin : core.cache.origins()) histories_.push_back({*origin, interval_, {}});
  for (const auto& cache : core.cache.all()) {
    for (History& history : histories_) {
      if (&cache->origin() == &history.origin && cache->resource().keeps_history) history.is_asked_for = true;
    }
  }
  for (History& history : histories_) {
    if (!history.is_asked_for) history.age = std::min<Duration>(interval_, kAgeOfNoHistory);
  }
}

void Compaction::start() {
  if (interval_ <= Duration::zero()) return;
  for (History& history : histories_) tick(history);
}

void Compaction::tick(History& history) {
  store::Store& store = history.origin.store();
  const store::Revision present = store.revision();
  const Instant now = core_.now.mono;
  auto& samples = history.samples;
  samples.emplace_back(now, present);
  store::Revision target;
  while (samples.size() > 1 && samples.front().first + history.age <= now) {
    target = samples.front().second;
    samples.pop_front();
  }
  // A store of one server bounds its history by bytes.
  if (store.is_shared() && present.number() > kRevisionsMax)
    target = std::max(target, store::Revision(present.number() - kRevisionsMax));
  const std::uint64_t newest = present.number() > kRevisionsMin ? present.number() - kRevisionsMin : 0;
  target = std::min(target, store::Revision(newest));
  if (target > store.compacted()) {
    store.compact(target, [this, &history](const Result<store::Revision>& result) { on_compacted(history, result); });
  }
  core_.timers.at(now + std::min<Duration>(kCompactEvery, history.age), [this, &history] { tick(history); });
}

void Compaction::on_compacted(const History& history, const Result<store::Revision>& result) const {
  if (result) return;
  core_.log.warning("compaction failed", {{"store", history.origin.label()}, {"error", result.error().text()}});
}

}  // namespace spillway::apiserver
