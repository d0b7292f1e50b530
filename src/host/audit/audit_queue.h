// Lines that wait for the audit log, within bounds.
// Thread: one at a time. Source: spec "API server at scale", 10.2.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace spillway::host {

struct AuditEntry {
  std::string line;                                  // the event without a newline
  std::move_only_function<void(Outcome)> done = {};  // may be empty
};

class AuditQueue {
 public:
  struct Bounds {
    std::size_t events_max = 10'000;
    std::size_t bytes_max = std::size_t{64} << 20U;
  };

  explicit AuditQueue(Bounds bounds) : bounds_(bounds) {}

  /// True if there is room for a line of this length. An empty queue takes any.
  bool has_room(std::size_t bytes) const;
  /// Adds the entry. False: there is no room, and `entry` is unchanged.
  [[nodiscard]] bool push(AuditEntry& entry);
  /// The oldest entries: of at most `bytes_max`, but at least one, if there is one.
  std::vector<AuditEntry> take(std::size_t bytes_max);

  bool empty() const { return entries_.empty(); }

 private:
  Bounds bounds_;
  std::deque<AuditEntry> entries_;
  std::size_t bytes_ = 0;
};

}  // namespace spillway::host
