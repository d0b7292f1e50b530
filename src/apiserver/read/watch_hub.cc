#include "apiserver/read/watch_hub.h"

#include "apiserver/read/object_converter.h"
#include "apiserver/read/pinned_objects.h"
#include "base/heap_size.h"
#include "base/rng.h"
#include "store/too_old.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr std::size_t kChunkBytes = 64U << 10U;
constexpr std::size_t kAheadMax = 1U << 20U;
constexpr std::size_t kWaitingMax = 4U << 20U;
// Events of one watch that wait for a conversion webhook; with more the watch ends.
constexpr std::size_t kPendingMax = 10'000;
// Events of one watch whose objects go to the webhook together.
constexpr std::size_t kPendingAtOnce = 100;
constexpr Duration kLagMax = seconds(10);
constexpr Duration kStartMax = seconds(60);  // until the initial events of a watch have been sent
constexpr Duration kBookmarkEvery = seconds(60);
constexpr Duration kBookmarkBeforeEnd = seconds(1);
constexpr Duration kLifeMin = minutes(30);  // for watches without a time-out: between this and twice as long

std::size_t hash_of(const Selection& selection) {
  std::uint64_t hash = fnv1a64(selection.ns);
  const auto add = [&hash](std::string_view text) { hash = fnv1a64(text, fnv1a64("/", hash)); };
  for (const api::LabelRequirement& each : selection.labels.requirements) {
    add(each.key);
    add(api::to_string(each.op));
    for (const std::string& value : each.values) add(value);
  }
  for (const Selection::FieldTerm& term : selection.fields) add(term.value);
  return hash;
}

/// Service accounts of a namespace count as one: a user that may act as one of them may act as all.
std::string watched_for(const std::string& user) {
  return user.starts_with("system:serviceaccount:") ? user.substr(0, user.rfind(':')) : user;
}

WatchEventType type_of(StateChange::Of of) {
  if (of == StateChange::Of::kCreated) return WatchEventType::kAdded;
  return of == StateChange::Of::kModified ? WatchEventType::kModified : WatchEventType::kDeleted;
}

}  // namespace

/// The lines one event makes, each rendered once however many watchers get it.
class WatchHub::Frames {
 public:
  Frames(EventPtr event, WallTime now, std::uint64_t id) : event_(std::move(event)), now_(now), id_(id) {
    const CacheEvent& of = *event_;
    selects_alike_ = of.previous && of.object && of.previous->meta.labels == of.object->meta.labels &&
                     of.previous->meta.fields == of.object->meta.fields;
  }

  const CacheEvent& event() const { return *event_; }

  const EventPtr& shared_event() const { return event_; }

  std::uint64_t id() const { return id_; }

  /// True if the watches that selected the object before select it now, and no others.
  bool selects_alike() const { return selects_alike_; }

  struct Line {
    WatchEventType type;
    bool columns;
    Rendering rendering;
    std::shared_ptr<const std::string> text;
    api::WatchDocumentPtr document;  // null: not available
  };

  const Line& line(WatchEventType type, const Rendering& rendering, bool columns) {
    for (const Line& line : lines_) {
      if (line.type == type && line.columns == columns && line.rendering == rendering) return line;
    }
    const ObjectPtr& object = type == WatchEventType::kDeleted ? deleted() : event_->object;
    auto text = std::make_shared<const std::string>(rendering.frame(type, *object, columns, now_));
    lines_.push_back({type, columns, rendering, std::move(text), document_of(type, rendering, *object)});
    return lines_.back();
  }

 private:
  static api::WatchDocumentPtr document_of(WatchEventType type, const Rendering& rendering,
                                           const StoredObject& object) {
    api::DocumentPtr document = rendering.document(object);
    if (!document) return nullptr;
    return std::make_shared<const api::WatchDocument>(std::string(to_string(type)), std::move(document), std::any());
  }

  /// The object of a DELETED event: the old content under the new revision.
  const ObjectPtr& deleted() {
    if (event_->last) return event_->last;
    if (!deleted_) deleted_ = make_last(*event_->previous, event_->revision);
    return deleted_;
  }

  EventPtr event_;
  WallTime now_;
  std::uint64_t id_;
  bool selects_alike_ = false;
  ObjectPtr deleted_;
  std::vector<Line> lines_;
};

WatchHub::SharedPtr WatchHub::share(Selection selection) {
  const std::size_t hash = hash_of(selection);
  const auto [begin, end] = shared_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    if (at->second->selection == selection) return at->second;
  }
  const std::size_t steps = selection.steps();
  return std::make_shared<Shared>(
      Shared{.selection = std::move(selection), .hash = hash, .steps = steps > kFreeSteps ? steps : 0, .watches = {}});
}

std::string_view WatchHub::take(const SharedPtr& shared, const std::string& user) {
  const auto open = watches_of_user_.find(user);
  if (open != watches_of_user_.end() && open->second >= kWatchesOfUser) {
    return "this user has too many watches: end some of them";
  }
  const bool is_new = shared->watches.empty();
  if (!shared->watches.contains(user) && shared->steps != 0) {
    const auto own = steps_of_user_.find(user);
    const std::size_t held = own == steps_of_user_.end() ? 0 : own->second;
    if (held + shared->steps > kStepsOfUser || (is_new && steps_ + shared->steps > kStepsOfAll)) {
      return "the selectors that are watched have too many terms: use shorter ones";
    }
    steps_of_user_[user] += shared->steps;
  }
  if (is_new) {
    steps_ += shared->steps;
    shared_.emplace(shared->hash, shared);
  }
  ++shared->watches[user];
  ++watches_of_user_[user];
  return {};
}

void WatchHub::give_back(const SharedPtr& shared, const std::string& user) {
  if (const auto open = watches_of_user_.find(user); --open->second == 0) watches_of_user_.erase(open);
  if (--shared->watches[user] != 0) return;
  shared->watches.erase(user);
  if (const auto own = steps_of_user_.find(user); own != steps_of_user_.end()) {
    own->second -= shared->steps;
    if (own->second == 0) steps_of_user_.erase(own);
  }
  if (!shared->watches.empty()) return;
  steps_ -= shared->steps;
  const auto [begin, end] = shared_.equal_range(shared->hash);
  for (auto at = begin; at != end; ++at) {
    if (at->second != shared) continue;
    shared_.erase(at);
    return;
  }
}

void WatchHub::open(ExchangePtr exchange, Rendering rendering, Selection selection, const ListOptions& options) {
  const SharedPtr shared = share(std::move(selection));
  auto watch = std::make_shared<Watch>(Watch{.id = ++last_id_,
                                             .exchange = std::move(exchange),
                                             .rendering = std::move(rendering),
                                             .shared = shared,
                                             .user = {}});
  Exchange& with = *watch->exchange;
  watch->cache = &core_.cache.of(*with.route.resource);
  // the kind was removed while the request waited
  if (watch->cache->is_detached()) return with.fail(api::unknown_resource_status());
  watch->converts = has_webhook(*with.route.resource);
  watch->user = watched_for(with.user().name);
  if (const std::string_view refusal = take(shared, watch->user); !refusal.empty()) {
    return with.fail(api::retry_status(ErrorCode::kTooManyRequests, refusal, 10));
  }
  with.open_stream(watch->rendering.stream_type(), [this, id = watch->id] {
    const auto found = watches_.find(id);
    if (found != watches_.end()) drop(*found->second);
  });
  if (with.finished()) return give_back(shared, watch->user);
  watches_.emplace(watch->id, watch);
  place_of(*watch).insert(watch->id);
  arm(watch, options);

  const bool initial = options.send_initial_events.value_or(false);
  const bool from_version = options.version && *options.version != store::Revision(0);
  if (initial || (!from_version && !options.send_initial_events)) {
    const bool marker = options.bookmarks && (initial || !options.version);
    watch->behind = true;
    start_from_state(watch, marker);
    return;
  }
  watch->from = watch->sent = from_version ? *options.version : watch->cache->origin().revision();
  catch_up(watch, std::make_shared<Start>());
}

void WatchHub::start_from_state(const WatchPtr& watch, bool marker) {
  const bool is_long = watch->cache->objects().size() > kLongList && !watch->shared->selection.name() &&
                       !watch->shared->selection.first_field();
  const LongReads::Reader reader{watch->exchange->user().name, false};
  if (is_long && !long_reads_.has_place(reader)) {
    const bool waits = long_reads_.wait(reader, [this, marker, held = std::weak_ptr(watch)] {
      if (const WatchPtr alive = held.lock(); alive && !alive->closed) start_from_state(alive, marker);
    });
    if (!waits) end(*watch);
    return;
  }
  const auto start = std::make_shared<Start>(state_of(*watch, marker));
  if (is_long) {
    start->place = watch->place = long_reads_.take(reader, [this, held = std::weak_ptr(watch)] {
      if (const WatchPtr slow = held.lock(); slow && !slow->closed) end(*slow);
    });
  }
  core_.timers.at(core_.now.mono + kStartMax, [this, held = std::weak_ptr(watch)] {
    if (const WatchPtr slow = held.lock(); slow && !slow->closed && slow->behind) end(*slow);
  });
  if (watch->converts) return convert_state(watch, start);
  catch_up(watch, start);
}

/// The state is converted as a whole before it is sent; events wait in the history meanwhile.
void WatchHub::convert_state(const WatchPtr& watch, const StartPtr& start) {
  std::vector<ObjectPtr> objects;
  start->objects->visit([&objects](const ObjectPtr& object) {
    objects.push_back(object);
    return true;
  });
  core_.converter->convert(*watch->exchange->route.resource, std::move(objects), ObjectConverter::Of::kList,
                           [this, start, held = std::weak_ptr(watch)](Conversion converted) {
                             on_state(held.lock(), start, std::move(converted));
                           });
}

/// `watch` null: it has ended.
void WatchHub::on_state(const WatchPtr& watch, const StartPtr& start, Conversion converted) {
  if (!watch || watch->closed) return;
  if (!converted) return fail_conversion(*watch, converted.error());
  start->objects = std::make_shared<GivenObjects>(*std::move(converted));
  catch_up(watch, start);
}

void WatchHub::fail_conversion(Watch& watch, const api::Status& status) {
  if (write(watch, watch.rendering.error_frame(status))) end(watch);
}

WatchHub::Start WatchHub::state_of(Watch& watch, bool marker) const {
  watch.from = watch.sent = watch.cache->origin().revision();
  ResourceCache& cache = core_.cache.of(watch.cache->resource());
  if (const auto node = watch.shared->selection.first_field(); node && cache.indexes_nodes()) {
    std::vector<ObjectPtr> objects;
    if (const ObjectMap* there = cache.on_node(*node)) {
      for (const auto& [key, object] : *there) objects.push_back(object);
    }
    return {
        .objects = std::make_shared<GivenObjects>(std::move(objects)), .changes = {}, .marker = marker, .place = {}};
  }
  return {.objects = PinnedObjects::make(cache, watch.from, watch.shared->selection.key_prefix(), {},
                                         PinnedObjects::Passes::kOne),
          .changes = {},
          .marker = marker,
          .place = {}};
}

void WatchHub::catch_up(const WatchPtr& watch, const StartPtr& start) {
  watch->behind = true;
  slices_.add([this, start, held = std::weak_ptr(watch)](SliceBudget& budget) {
    const WatchPtr alive = held.lock();
    if (alive && !alive->closed) {
      if (!send_state(*alive, *start, budget) || !send_history(*alive, *start, budget)) {
        if (alive->exchange->waiting_bytes() < kAheadMax) return false;
        wait_for_client(alive, start);
        return true;
      }
      alive->behind = false;
      alive->lag.since = core_.now.mono;
      if (const auto release_seats = std::exchange(alive->exchange->release_seats, nullptr)) release_seats();
    }
    if (start->place) long_reads_.give_back(*start->place);
    return true;
  });
}

void WatchHub::wait_for_client(const WatchPtr& watch, const StartPtr& start) {
  if (start->place) long_reads_.pause(*start->place);
  // The callback is called between events and without a time; the timer provides one.
  watch->exchange->when_below(kAheadMax / 2, [this, start, held = std::weak_ptr(watch)] {
    core_.timers.at(core_.now.mono, [this, start, held] {
      if (start->place) long_reads_.resume(*start->place);
      if (const WatchPtr alive = held.lock(); alive && !alive->closed) catch_up(alive, start);
    });
  });
}

bool WatchHub::send_state(Watch& watch, Start& start, SliceBudget& budget) {
  if (!send_objects(watch, start, budget) || !send_changes(watch, start, budget)) return false;
  if (watch.closed) return true;
  if (std::exchange(start.marker, false)) write(watch, watch.rendering.bookmark(watch.sent, true));
  return true;
}

bool WatchHub::send_objects(Watch& watch, Start& start, SliceBudget& budget) {
  if (!start.objects) return true;
  std::string chunk;
  const std::size_t visit_cost = watch.shared->selection.visit_cost();
  const bool all = start.objects->visit([&](const ObjectPtr& object) {
    const bool matches = watch.shared->selection.matches(*object);
    if (chunk.size() >= kChunkBytes && !write(watch, std::exchange(chunk, {}))) return false;
    if (!budget.take(visit_cost + (matches ? watch.rendering.cost(*object) : 0))) return false;
    if (!matches) return true;
    chunk += watch.rendering.frame(WatchEventType::kAdded, *object, !std::exchange(watch.columns_sent, true),
                                   core_.now.wall);
    return true;
  });
  if (!chunk.empty()) write(watch, std::move(chunk));
  if (watch.closed) return true;
  if (!all) return false;
  start.objects = nullptr;
  return true;
}

bool WatchHub::send_changes(Watch& watch, Start& start, SliceBudget& budget) {
  std::string chunk;
  const std::size_t visit_cost = watch.shared->selection.visit_cost();
  bool left = true;
  for (; left && start.next < start.changes.size(); ++start.next) {
    const auto& [of, object] = start.changes[start.next];
    const bool matches = watch.shared->selection.matches(*object);
    left = watch.exchange->waiting_bytes() < kAheadMax &&
           budget.take(visit_cost + (matches ? watch.rendering.cost(*object) : 0));
    if (!left) break;
    if (!matches) continue;
    chunk += watch.rendering.frame(type_of(of), *object, !std::exchange(watch.columns_sent, true), core_.now.wall);
    if (chunk.size() >= kChunkBytes && !write(watch, std::exchange(chunk, {}))) return true;
  }
  if (!chunk.empty() && !write(watch, std::move(chunk))) return true;
  if (!left) return false;
  start.changes = {};
  start.next = 0;
  return true;
}

/// Resumes a watch whose events are gone from the present state. The watch has been sent everything up to `sent`.
bool WatchHub::resume_by_state(Watch& watch, Start& start) const {
  if (watch.converts || !watch.cache->covers_state(watch.sent) || !watch.shared->selection.is_by_name()) return false;
  start.changes = watch.cache->changes_since(watch.sent);
  watch.from = watch.sent = watch.cache->origin().revision();
  return true;
}

bool WatchHub::send_history(Watch& watch, Start& start, SliceBudget& budget) {
  if (watch.closed) return true;
  if (!watch.cache->covers(watch.sent)) {
    if (resume_by_state(watch, start)) return send_state(watch, start, budget) && send_history(watch, start, budget);
    const api::Status status = store::too_old(watch.sent, watch.cache->origin().store().compacted());
    if (write(watch, watch.rendering.error_frame(status))) end(watch);
    return true;
  }
  const std::size_t visit_cost = watch.shared->selection.visit_cost();
  for (const EventPtr& event : watch.cache->events_after(watch.sent)) {
    if (watch.closed) return true;
    const bool left = watch.exchange->waiting_bytes() < kAheadMax &&
                      budget.take(visit_cost + watch.rendering.cost(event->object ? *event->object : *event->last));
    if (!left && event->revision != watch.sent) return false;  // a revision is not cut
    Frames frames(event, core_.now.wall, ++frames_);
    deliver(watch, frames);
  }
  return true;
}

std::size_t WatchHub::general_count(const ResourceCache& cache) const {
  const auto found = audiences_.find(&cache);
  return found == audiences_.end() ? 0 : found->second.general.size();
}

std::size_t WatchHub::heap_bytes() const {
  constexpr std::size_t kOfWatch = block_bytes(2 * sizeof(void*) + sizeof(Watch)) +
                                   tree_node_bytes<std::pair<WatchId, WatchPtr>>() +
                                   tree_node_bytes<WatchId>();  // in the audience of its resource
  std::size_t bytes = watches_.size() * kOfWatch + shared_.size() * block_bytes(2 * sizeof(void*) + sizeof(Shared));
  for (const auto& [id, watch] : watches_) bytes += watch->pending.size() * sizeof(EventPtr);
  return bytes;
}

void WatchHub::on_event(const ResourceCache& cache, const EventPtr& event) {
  const auto found = audiences_.find(&cache);
  if (found == audiences_.end()) return;
  const Audience& audience = found->second;
  std::vector<WatchId> ids(audience.general.begin(), audience.general.end());
  const auto add = [&ids](const auto& index, std::string_view value) {
    const auto narrowed = index.find(value);
    if (narrowed != index.end()) ids.insert(ids.end(), narrowed->second.begin(), narrowed->second.end());
  };
  const StoredObject& object = event->object ? *event->object : *event->previous;
  add(audience.by_name, object.name);
  // A custom kind may have lost its fields since some of these objects were read.
  const auto has_field = [](const StoredObject& of) { return !of.meta.fields.empty(); };
  if (!audience.by_first_field.empty() && has_field(object)) {
    add(audience.by_first_field, object.meta.fields.front());
    if (event->previous && has_field(*event->previous) &&
        event->previous->meta.fields.front() != object.meta.fields.front()) {
      add(audience.by_first_field, event->previous->meta.fields.front());
    }
  }
  std::ranges::sort(ids);
  Frames frames(event, core_.now.wall, ++frames_);
  for (const WatchId id : ids) {
    const auto watch = watches_.find(id);
    if (watch == watches_.end()) continue;
    const WatchPtr held = watch->second;
    if (!held->behind) deliver(*held, frames);
  }
}

void WatchHub::deliver(Watch& watch, Frames& frames) {
  const CacheEvent& event = frames.event();
  if (watch.closed || event.revision <= watch.from || event.revision < watch.sent) return;
  watch.sent = event.revision;
  const Resource& row = *watch.exchange->route.resource;
  const auto is_other = [&row](const ObjectPtr& object) { return object && needs_webhook(row, *object); };
  if (watch.converts &&
      (!watch.pending.empty() || watch.converting || is_other(event.object) || is_other(event.previous))) {
    if (watch.pending.size() >= kPendingMax) return end(watch);
    watch.pending.push_back(frames.shared_event());
    const auto alive = watches_.find(watch.id);
    if (alive != watches_.end()) convert_pending(WatchPtr(alive->second));
    return;
  }
  send_event(watch, frames);
}

/// Converts what waits, a part at a time: in the order of the events, each with the object as it was before.
void WatchHub::convert_pending(const WatchPtr& watch) {
  while (!watch->closed && !watch->converting && !watch->pending.empty()) {
    const std::size_t count = std::min(watch->pending.size(), kPendingAtOnce);
    const auto end_of_part = watch->pending.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<EventPtr> events(watch->pending.begin(), end_of_part);
    watch->pending.erase(watch->pending.begin(), end_of_part);
    std::vector<ObjectPtr> objects;
    for (const EventPtr& event : events) {
      objects.push_back(event->object);
      objects.push_back(event->previous);
    }
    watch->converting = true;
    core_.converter->convert(*watch->exchange->route.resource, std::move(objects), ObjectConverter::Of::kObject,
                             [this, events = std::move(events), held = std::weak_ptr(watch)](
                                 const Conversion& converted) { on_converted(held.lock(), events, converted); });
  }
}

/// `watch` null: it has ended.
void WatchHub::on_converted(const WatchPtr& watch, const std::vector<EventPtr>& events, const Conversion& converted) {
  if (!watch || watch->closed) return;
  watch->converting = false;
  if (!converted) return fail_conversion(*watch, converted.error());
  send_converted(*watch, events, *converted);
  convert_pending(watch);
}

/// `objects`: of each event, the object and the one before.
void WatchHub::send_converted(Watch& watch, const std::vector<EventPtr>& events,
                              const std::vector<ObjectPtr>& objects) {
  for (std::size_t i = 0; i < events.size() && !watch.closed; ++i) {
    const CacheEvent& event = *events[i];
    Frames frames(std::make_shared<const CacheEvent>(CacheEvent{.revision = event.revision,
                                                                .at = event.at,
                                                                .object = objects[2 * i],
                                                                .previous = objects[2 * i + 1],
                                                                .last = nullptr}),
                  core_.now.wall, ++frames_);
    send_event(watch, frames);
  }
}

void WatchHub::send_event(Watch& watch, Frames& frames) {
  match(*watch.shared, frames);
  const bool was = watch.shared->was;
  const bool is = watch.shared->is;
  if (!was && !is) return;
  WatchEventType type = WatchEventType::kModified;
  if (!was) type = WatchEventType::kAdded;
  if (!is) type = WatchEventType::kDeleted;
  const bool columns = watch.rendering.is_table() && !std::exchange(watch.columns_sent, true);
  const Frames::Line& line = frames.line(type, watch.rendering, columns);
  if (!watch.behind && is_too_far_behind(watch, line.text->size())) return end(watch);
  if (!watch.exchange->write_event(line.text, line.document)) end(watch);
}

void WatchHub::match(Shared& shared, const Frames& frames) {
  if (std::exchange(shared.matched, frames.id()) == frames.id()) return;
  const CacheEvent& event = frames.event();
  matches_ += (event.previous ? 1U : 0U) + (event.object && !frames.selects_alike() ? 1U : 0U);
  shared.was = event.previous && shared.selection.matches(*event.previous);
  shared.is = frames.selects_alike() ? shared.was : event.object && shared.selection.matches(*event.object);
}

/// True before `more_bytes` are written if too many bytes wait, or bytes written kLagMax ago are still unread.
bool WatchHub::is_too_far_behind(Watch& watch, std::size_t more_bytes) const {
  Lag& lag = watch.lag;
  const std::uint64_t waiting = watch.exchange->waiting_bytes();
  if (waiting != 0 && waiting + more_bytes > kWaitingMax) return true;
  if (lag.written < lag.mark + waiting) {
    if (core_.now.mono - lag.since > kLagMax) return true;
  } else {
    lag.mark = lag.written + more_bytes;
    lag.since = core_.now.mono;
  }
  lag.written += more_bytes;
  return false;
}

bool WatchHub::write(Watch& watch, std::string text) {
  if (watch.closed) return false;
  if (watch.exchange->write(std::make_shared<const std::string>(std::move(text)))) return !watch.closed;
  end(watch);
  return false;
}

void WatchHub::send_bookmark(Watch& watch) {
  if (watch.behind || watch.converting || !watch.pending.empty()) return;  // not all events up to now were sent to it
  write(watch, watch.rendering.bookmark(std::max(watch.sent, watch.cache->origin().revision()), false));
}

void WatchHub::arm(const WatchPtr& watch, const ListOptions& options) {
  Duration life =
      kLifeMin + Duration(static_cast<Duration::rep>(core_.rng.below(static_cast<std::uint64_t>(kLifeMin.count()))));
  constexpr std::int64_t kTimeoutSecondsMax = 1'000'000;
  if (options.timeout_seconds && *options.timeout_seconds > 0) {
    life = seconds(std::min(*options.timeout_seconds, kTimeoutSecondsMax));
  }
  const Instant end_at = core_.now.mono + life;
  watch->end_timer = core_.timers.at(end_at, [this, held = std::weak_ptr(watch)] {
    if (const WatchPtr alive = held.lock()) end(*alive);
  });
  if (!options.bookmarks) return;
  const Duration last = life > 2 * kBookmarkBeforeEnd ? life - kBookmarkBeforeEnd : life / 2;
  arm_bookmark(watch, core_.now.mono + std::min<Duration>(kBookmarkEvery, last), core_.now.mono + last);
}

void WatchHub::arm_bookmark(const WatchPtr& watch, Instant due, Instant end) {
  watch->bookmark_timer = core_.timers.at(due, [this, due, end, held = std::weak_ptr(watch)] {
    const WatchPtr alive = held.lock();
    if (!alive) return;
    alive->bookmark_timer.reset();
    send_bookmark(*alive);
    if (!alive->closed && due < end) arm_bookmark(alive, std::min(due + kBookmarkEvery, end), end);
  });
}

std::set<WatchHub::WatchId>& WatchHub::place_of(const Watch& watch) {
  Audience& audience = audiences_[watch.cache];
  if (const auto name = watch.shared->selection.name()) return audience.by_name[std::string(*name)];
  if (const auto value = watch.shared->selection.first_field()) return audience.by_first_field[std::string(*value)];
  return audience.general;
}

void WatchHub::drop(Watch& watch) {
  if (watch.closed) return;
  watch.closed = true;
  if (watch.place) long_reads_.give_back(*watch.place);
  core_.timers.cancel(watch.end_timer);
  if (watch.bookmark_timer) core_.timers.cancel(*watch.bookmark_timer);
  std::set<WatchId>& place = place_of(watch);
  place.erase(watch.id);
  Audience& audience = audiences_[watch.cache];
  if (place.empty()) {
    if (const auto name = watch.shared->selection.name()) {
      audience.by_name.erase(audience.by_name.find(*name));
    } else if (const auto value = watch.shared->selection.first_field()) {
      audience.by_first_field.erase(audience.by_first_field.find(*value));
    }
  }
  give_back(watch.shared, watch.user);
  watches_.erase(watch.id);
}

void WatchHub::end(Watch& watch) {
  const ExchangePtr exchange = watch.exchange;
  drop(watch);
  exchange->end();
}

void WatchHub::end_all() {
  while (!watches_.empty()) {
    const WatchPtr first = watches_.begin()->second;
    end(*first);
  }
}

void WatchHub::end_all(const Origin& origin) {
  end_those([&](const Watch& watch) { return &watch.cache->origin() == &origin; });
}

void WatchHub::end_all(const ResourceCache& cache) {
  end_those([&](const Watch& watch) { return watch.cache == &cache; });
}

void WatchHub::end_those(const std::function<bool(const Watch&)>& which) {
  std::vector<WatchPtr> there;
  for (const auto& [id, watch] : watches_) {
    if (which(*watch)) there.push_back(watch);
  }
  for (const WatchPtr& watch : there) {
    if (!watch->closed) end(*watch);
  }
}

}  // namespace spillway::apiserver
