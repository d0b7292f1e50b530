// Names of objects to sync: each name once, ordered by due time and then by arrival. A name in work is not taken a
// second time; if it is added meanwhile it is queued again when the work is done. Retries back off exponentially per
// name, from `retry_min` to `retry_max`, without jitter: order is deterministic.
// Thread: loop. Bounds: one entry per name; the names are those of objects in a cache.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

namespace spillway::client {

class WorkQueue {
 public:
  struct Limits {
    Duration retry_min = milliseconds(5);
    Duration retry_max = seconds(60);
    /// Retries after which retry() gives up; 0: never.
    int retries_max = 0;
  };

  WorkQueue() = default;

  explicit WorkQueue(Limits limits) : limits_(limits) {}

  /// Adds a name to be synced at or after `due`; an entry that is due earlier is not changed.
  void add(std::string_view name, Instant due);
  /// Adds the name after its next back-off; false if it has been retried too often (it is forgotten then).
  bool retry(std::string_view name, Instant now);
  /// The next retry() of the name starts from `retry_min` again.
  void forget(std::string_view name);
  /// Drops the name from the queue and forgets it; work in progress is not affected.
  void remove(std::string_view name);

  /// The first name that is due, now in progress; done() must follow.
  std::optional<std::string> take(Instant now);
  void done(std::string_view name);

  /// The time of the next entry for take(); nullopt: nothing waits.
  std::optional<Instant> next_due() const;

  bool contains(std::string_view name) const { return by_name_.contains(name); }

  bool in_progress(std::string_view name) const { return active_.contains(name); }

  std::size_t size() const { return by_name_.size(); }

  std::size_t active() const { return active_.size(); }

  int failures(std::string_view name) const;

  /// Names that take() would hand out.
  std::size_t count_due(Instant now) const;

  /// The number of times that a name was added so far, and by retry().
  std::uint64_t adds() const { return adds_; }

  std::uint64_t retries() const { return retries_; }

 private:
  using Position = std::pair<Instant, std::uint64_t>;

  Limits limits_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t adds_ = 0;
  std::uint64_t retries_ = 0;
  std::map<std::string, Position, std::less<>> by_name_;
  std::map<Position, std::string> order_;                              // names that are not in progress
  std::map<std::string, std::optional<Instant>, std::less<>> active_;  // due again, if added meanwhile
  std::map<std::string, int, std::less<>> failures_;
};

}  // namespace spillway::client
