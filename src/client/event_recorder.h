// Writes Kubernetes events: the first of a kind is posted, repeats raise the count of that object with a patch. Repeats
// during the first write are counted in; the correlator decides which events are sent at all. Names are "<object>.<16
// hex digits>" from the random stream, so a replayed seed writes the same names.
// Thread: loop. Bounds: `queue_max` events wait (the oldest is dropped and counted), `known_max` kinds are remembered
// for an hour at most, `in_flight_max` calls, `attempts_max` attempts per write. Source: Kubernetes "Event" API page;
// spec "API server contract", 14.
#pragma once

#include "api/object/event.h"
#include "base/rng.h"
#include "base/time.h"
#include "client/api_client.h"
#include "client/event_correlator.h"

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::client {

class EventRecorder {
 public:
  struct Limits {
    std::size_t queue_max = 1000;
    std::size_t known_max = 4096;
    std::size_t in_flight_max = 8;
    int attempts_max = 4;
    std::size_t similar_max = kSimilarMax;  // passed on to the correlator
    int object_burst = kObjectBurst;        // passed on to the correlator
  };

  /// `component`: "node-controller"; `host`: the node an agent runs on, else empty.
  EventRecorder(ApiClient& client, Rng rng, std::string component, std::string host, Limits limits);
  EventRecorder(ApiClient& client, Rng rng, std::string component, std::string host = {});
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void record(const api::ObjectReference& about, EventType type, std::string_view reason, std::string_view message,
              Now now);

  /// Events given up: pushed out of the full queue, or refused too often.
  std::uint64_t dropped() const { return dropped_; }

  std::size_t waiting() const { return queue_.size(); }

 private:
  struct Known {
    std::string name;     // empty until posted
    std::string message;  // the text of the latest event
    std::int32_t count = 0;
    std::int32_t count_due = 0;  // count when the last request was sent; later ones wait for the next
    std::int32_t count_written = 0;
    WallTime first{};
    WallTime last{};
    Instant last_seen{};
    std::list<const EventKey*>::iterator place;  // in by_use_
    bool queued = false;
    bool writing = false;
    int attempts = 0;
  };

  void enqueue(const EventKey& key, Known& known);
  void pump();
  void write(const EventKey& key, Known& known);
  void on_written(const EventKey& key, std::int32_t count, const Result<api::Json>& outcome, Now now);
  Known& use(const EventKey& key, Now now);
  void forget_old(Now now);
  void forget(std::map<EventKey, Known>::iterator known);
  api::Event event_of(const EventKey& key, const Known& known) const;

  ApiClient& client_;
  Rng rng_;
  std::string component_;
  std::string host_;
  Limits limits_;
  EventCorrelator correlator_;
  std::map<EventKey, Known> known_;
  std::list<const EventKey*> by_use_;  // all entries, the one with the oldest event first
  std::deque<EventKey> queue_;
  std::size_t in_flight_ = 0;
  std::uint64_t dropped_ = 0;
};

/// A reference to a decoded object, as events carry it.
template <typename T>
api::ObjectReference reference_to(const T& object) {
  return {.kind = std::string(T::kKind),
          .api_version = std::string(T::kApiVersion),
          .ns = object.metadata.ns,
          .name = object.metadata.name,
          .uid = object.metadata.uid,
          .resource_version = object.metadata.resource_version,
          .field_path = {}};
}

}  // namespace spillway::client
