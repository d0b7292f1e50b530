// Aggregates and limits events: events that differ only in their text become one, and an object with too many events is
// silenced. Suppressed events are counted, and the next event that is sent carries the count. Thread: loop. Bounds:
// `known_max` objects, as many reasons of objects, nine texts of each. Source: Kubernetes "Event" API page; spec "Node
// agent", 6.2.
#pragma once

#include "api/object/event.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "client/recent_map.h"

#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

namespace spillway::client {

enum class EventType { kNormal, kWarning };

/// The number of texts about one object for one reason, each within ten minutes of the one before it, from which on
/// further ones become one event.
inline constexpr std::size_t kSimilarMax = 10;
inline constexpr Duration kSimilarWithin = minutes(10);
/// A source may send this many events about one object at once, and one more every five minutes.
inline constexpr int kObjectBurst = 25;
inline constexpr Duration kObjectRefill = minutes(5);
inline constexpr std::string_view kCombinedPrefix = "(combined from similar events): ";

/// The key by which two events of a source count as the same event.
struct EventKey {
  api::ObjectReference about;  // object reference without resourceVersion
  EventType type = EventType::kNormal;
  std::string reason;
  std::string message;    // empty for combined events
  bool combined = false;  // from similar events

  friend auto operator<=>(const EventKey&, const EventKey&) = default;
};

struct CorrelatedEvent {
  EventKey key;
  std::string message;  // the text of the latest event
  bool passes = true;   // false: counted, not written
};

class EventCorrelator {
 public:
  struct Limits {
    std::size_t known_max = 4096;
    std::size_t similar_max = kSimilarMax;
    int object_burst = kObjectBurst;
  };

  explicit EventCorrelator(Limits limits)
      : limits_(limits),
        similar_(limits.known_max, kSimilarWithin),
        buckets_(limits.known_max, kObjectRefill * limits.object_burst) {}

  /// `event`: as recorded, before it is combined.
  CorrelatedEvent correlate(EventKey event, Instant now);

 private:
  using SimilarKey = std::tuple<api::ObjectReference, EventType, std::string>;

  Limits limits_;
  RecentMap<SimilarKey, std::set<std::string>> similar_;  // texts
  RecentMap<api::ObjectReference, TokenBucket> buckets_;  // sources with full buckets may be dropped
};

}  // namespace spillway::client
