#include "client/event_correlator.h"

#include <utility>

namespace spillway::client {
namespace {

constexpr float kRefillRate = 1.0F / static_cast<float>(std::chrono::duration_cast<seconds>(kObjectRefill).count());

}  // namespace

CorrelatedEvent EventCorrelator::correlate(EventKey event, Instant now) {
  api::ObjectReference object = event.about;
  object.field_path.clear();  // events of a pod's containers count as the pod's
  CorrelatedEvent correlated{.key = std::move(event), .message = {}, .passes = true};
  EventKey& key = correlated.key;
  correlated.message = key.message;

  std::set<std::string>& texts =
      similar_.use({object, key.type, key.reason}, now, [] { return std::set<std::string>(); });
  texts.insert(key.message);
  if (texts.size() >= limits_.similar_max) {
    texts.erase(key.message);  // other messages keep their own events
    correlated.message.insert(0, kCombinedPrefix);
    key.about = object;
    key.message.clear();
    key.combined = true;
  }
  TokenBucket& bucket = buckets_.use(object, now, [this, now] {
    return TokenBucket(BucketKind::kContinuous, kRefillRate, limits_.object_burst, now);
  });
  correlated.passes = bucket.try_take(now);
  return correlated;
}

}  // namespace spillway::client
