// The nodes of one zone that wait to be tainted (or evicted), in order of their time and then of arrival, behind a rate
// limiter. A name that was taken stays registered, so that it is not queued twice, until it is removed.
// Thread: any (a value). Bound: one entry per node of the zone. Source: spec "Node lifecycle", S7.1; vectors
// lifecycle/rate_limited_queue.
#pragma once

#include "base/time.h"
#include "policy/lifecycle/rate_limiter.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::lifecycle {

class RateLimitedQueue {
 public:
  struct Entry {
    std::string name;
    std::string uid;
    Instant added;
    Instant process_at;
  };

  explicit RateLimitedQueue(RateLimiter limiter) : limiter_(std::move(limiter)) {}

  /// False if the name is registered already.
  bool add(std::string_view name, std::string_view uid, Instant now);
  /// The effect of remove() and add(), without allocation.
  void requeue(std::string_view name, std::string_view uid, Instant now);
  /// Removes the name and its entry; false if it was not registered.
  bool remove(std::string_view name);
  void clear();

  /// The next entry, if the limiter grants a token and the entry is due. An empty queue takes no token; a grant for an
  /// entry that is not due yet is spent. The entry is removed from the queue, its name stays registered.
  std::optional<Entry> take(Instant now);
  /// Puts an entry back that take() gave: it could not be handled and is due again 1 ns after `now + wait`. Nothing
  /// happens if the name was removed or queued anew meanwhile.
  void put_back(Entry entry, Duration wait, Instant now);

  RateLimiter& limiter() { return limiter_; }

  const RateLimiter& limiter() const { return limiter_; }

  bool empty() const { return order_.empty(); }

  std::size_t size() const { return order_.size(); }

  bool knows(std::string_view name) const { return known_.contains(name); }

  /// Time the first entry was added; nullopt: empty.
  std::optional<Instant> oldest_added() const;

  /// The waiting entries in order.
  std::vector<const Entry*> entries() const;

 private:
  using Position = std::pair<Instant, std::uint64_t>;

  RateLimiter limiter_;
  std::uint64_t arrivals_ = 0;
  std::map<Position, Entry> order_;
  std::map<std::string, std::optional<Position>, std::less<>> known_;  // nullopt: handed out
};

}  // namespace spillway::lifecycle
