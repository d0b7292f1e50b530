#include "client/event_recorder.h"

#include "api/codec/codec.h"
#include "api/text/time_text.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::client {
namespace {

constexpr Duration kRemembered = hours(1);  // the server's lifetime of an event
constexpr Duration kRetryMin = seconds(1);

std::string_view to_string(EventType type) {
  return type == EventType::kNormal ? "Normal" : "Warning";
}

std::string_view namespace_of(const api::ObjectReference& about) {
  return about.ns.empty() ? std::string_view("default") : about.ns;
}

/// Worth another attempt: nothing was wrong with the event itself.
bool is_transient(ErrorCode code) {
  return code == ErrorCode::kServiceUnavailable || code == ErrorCode::kTimeout || code == ErrorCode::kTooManyRequests ||
         code == ErrorCode::kInternalError;
}

}  // namespace

EventRecorder::EventRecorder(ApiClient& client, Rng rng, std::string component, std::string host, Limits limits)
    : client_(client),
      rng_(rng),
      component_(std::move(component)),
      host_(std::move(host)),
      limits_(limits),
      correlator_({limits.known_max, limits.similar_max, limits.object_burst}) {}

EventRecorder::EventRecorder(ApiClient& client, Rng rng, std::string component, std::string host)
    : EventRecorder(client, rng, std::move(component), std::move(host), Limits{}) {}

void EventRecorder::record(const api::ObjectReference& about, EventType type, std::string_view reason,
                           std::string_view message, Now now) {
  api::ObjectReference object = about;
  object.resource_version.clear();  // the version changes with every write and would make every repeat a new event
  const CorrelatedEvent event = correlator_.correlate(
      {.about = std::move(object), .type = type, .reason = std::string(reason), .message = printable(message)},
      now.mono);
  const EventKey& key = event.key;
  Known& known = use(key, now);
  if (known.count > 0 && now.mono - known.last_seen > kRemembered && !known.queued && !known.writing) {
    const auto place = known.place;
    known = Known{};
    known.place = place;
  }
  if (known.count == 0) known.first = now.wall;
  ++known.count;
  known.message = event.message;
  known.last = now.wall;
  known.last_seen = now.mono;
  if (!event.passes) return;
  known.count_due = known.count;
  if (!known.queued && !known.writing) enqueue(key, known);
  pump();
}

void EventRecorder::enqueue(const EventKey& key, Known& known) {
  if (queue_.size() >= limits_.queue_max) {
    if (const auto first = known_.find(queue_.front()); first != known_.end()) first->second.queued = false;
    queue_.pop_front();
    ++dropped_;
  }
  known.queued = true;
  queue_.push_back(key);
}

/// Moves the entry of this key behind all others, since its event is the newest.
EventRecorder::Known& EventRecorder::use(const EventKey& key, Now now) {
  if (const auto found = known_.find(key); found != known_.end()) {
    by_use_.splice(by_use_.end(), by_use_, found->second.place);
    return found->second;
  }
  if (known_.size() >= limits_.known_max) forget_old(now);
  const auto added = known_.try_emplace(key).first;
  added->second.place = by_use_.insert(by_use_.end(), &added->first);
  return added->second;
}

/// Makes room: drops entries without an event for an hour, else the one whose last event is oldest.
void EventRecorder::forget_old(Now now) {
  for (auto next = by_use_.begin(); next != by_use_.end();) {
    const auto it = known_.find(**next++);
    if (it->second.queued || it->second.writing) continue;
    const bool is_old = now.mono - it->second.last_seen > kRemembered;
    if (!is_old && known_.size() < limits_.known_max) return;
    forget(it);
    if (!is_old) return;
  }
}

void EventRecorder::forget(std::map<EventKey, Known>::iterator known) {
  by_use_.erase(known->second.place);
  known_.erase(known);
}

void EventRecorder::pump() {
  while (in_flight_ < limits_.in_flight_max && !queue_.empty()) {
    const EventKey key = std::move(queue_.front());
    queue_.pop_front();
    const auto it = known_.find(key);
    if (it == known_.end()) continue;
    it->second.queued = false;
    write(it->first, it->second);
  }
}

api::Event EventRecorder::event_of(const EventKey& key, const Known& known) const {
  api::Event event;
  event.metadata.name = known.name;
  event.metadata.ns = namespace_of(key.about);
  event.involved_object = key.about;
  event.type = to_string(key.type);
  event.reason = key.reason;
  event.message = known.message;
  event.source_component = component_;
  event.source_host = host_;
  event.reporting_component = component_;
  event.reporting_instance = host_;
  event.first_timestamp = known.first;
  event.last_timestamp = known.last;
  event.count = known.count;
  return event;
}

void EventRecorder::write(const EventKey& key, Known& known) {
  ++in_flight_;
  known.writing = true;
  const api::ObjectReference& about = key.about;
  const auto done = [this, key, count = known.count](const Result<api::Json>& outcome, Now now) {
    on_written(key, count, outcome, now);
  };
  if (known.count_written == 0) {
    if (known.name.empty()) known.name = fmt::format("{}.{:016x}", about.name, rng_.next());
    client_.create(object_path("v1", "events", namespace_of(about)), api::encode(event_of(key, known)), done);
  } else {
    const auto patch = api::Json::object(
        {{"count", known.count}, {"lastTimestamp", api::format_time(known.last)}, {"message", known.message}});
    client_.patch(object_path("v1", "events", namespace_of(about), known.name), PatchType::kStrategicMerge, patch,
                  done);
  }
}

void EventRecorder::on_written(const EventKey& key, std::int32_t count, const Result<api::Json>& outcome, Now now) {
  --in_flight_;
  const auto it = known_.find(key);
  if (it == known_.end()) return pump();
  Known& known = it->second;
  known.writing = false;
  const bool was_post = known.count_written == 0;
  if (outcome || (was_post && outcome.error().code == ErrorCode::kAlreadyExists)) {
    known.attempts = 0;
    known.count_written = count;
    if (known.count_due > count) enqueue(key, known);
  } else if (!was_post && outcome.error().code == ErrorCode::kNotFound) {
    known.name.clear();  // the event has expired: post anew
    known.count_written = 0;
    known.count = known.count_due = 1;
    known.first = known.last;
    enqueue(key, known);
  } else if (is_transient(outcome.error().code) && ++known.attempts < limits_.attempts_max) {
    const Duration wait = kRetryMin * (1 << known.attempts);
    known.writing = true;  // until the retry: repeats are counted in
    client_.at(now.mono + wait, [this, key](Now) {
      const auto again = known_.find(key);
      if (again == known_.end()) return;
      again->second.writing = false;
      enqueue(key, again->second);
      pump();
    });
  } else {
    ++dropped_;
    forget(it);
  }
  pump();
}

}  // namespace spillway::client
