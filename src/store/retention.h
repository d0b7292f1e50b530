// Decides which part of a store's past stays readable, by revisions, ages and sizes; the store deletes the rest.
// Thread: one at a time. Source: spec "API server contract", 9.13 and 22.4 (compaction).
#pragma once

#include "base/bytes.h"
#include "base/time.h"
#include "store/store.h"

#include <cstdint>
#include <deque>

namespace spillway::store {

struct HistoryPolicy {
  /// History younger than this, and the newest `revisions_min` revisions, are kept.
  Duration age_min = minutes(5);
  std::uint64_t revisions_min = 10'000;
  /// A limit on history: it does not outgrow half of the live objects, or this where they are few: churn (leases)
  /// shortens history instead of letting the file grow. Even so the newest `revisions_floor` revisions stay.
  Bytes bytes_max = mebibytes(16);
  std::uint64_t revisions_floor = 1'000;
  /// The time between two notes of ages: history is kept up to this much longer than `age_min`.
  Duration interval = minutes(1);
};

/// The sizes of a store's present state and history.
struct HistorySize {
  Revision head;
  Revision compacted;
  Bytes live;     // the present state
  Bytes history;  // bytes of states before the present one, of revisions (compacted, head]
};

class Retention {
 public:
  /// History that exists before `now` counts as written now.
  Retention(HistoryPolicy policy, Instant now, Revision head);

  /// The revision to compact to, size.compacted if nothing may go. Call it after each group of writes, and at
  /// next_wakeup().
  Revision compact_to(const HistorySize& size, Instant now);

  /// The time at which age alone may change the answer.
  Instant next_wakeup() const { return marks_.back().at + policy_.interval; }

 private:
  /// Every revision up to `head` was written at `at` or before.
  struct Mark {
    Instant at;
    Revision head;
  };

  HistoryPolicy policy_;
  std::deque<Mark> marks_;  // never empty; at most age_min / interval + 2
};

}  // namespace spillway::store
