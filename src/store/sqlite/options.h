// Options of a SQLite store. The defaults are those of `spillway up`. Thread: any.
#pragma once

#include "base/bytes.h"
#include "base/time.h"
#include "store/retention.h"
#include "store/store.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace spillway::store {

struct SqliteOptions {
  StoreLimits limits;
  HistoryPolicy history;
  /// Writes that share one transaction, at most: bounds the latency of a group and the memory it takes.
  std::size_t group_writes_max = 256;
  Bytes group_bytes_max = mebibytes(8);
  /// Log rows that compaction deletes in one transaction, at most, besides those that make room for the group's own.
  std::size_t trim_rows_max = 1'000;
  /// Pages of the write-ahead log that wait to be moved into the main file before that is begun, beside the writer.
  /// Larger: pages that change often are written there less often.
  std::int64_t checkpoint_pages = 4096;
  /// Pages in the log from which on the writer finishes the move between two groups, so that the log begins anew: when
  /// few are left, and in any case.
  std::int64_t log_pages_wanted = 16'384;
  std::int64_t log_pages_max = 65'536;
  /// nullopt: as large as the disk allows. Beyond it writes fail as on a full disk; a sixteenth of it is the reserve.
  std::optional<Bytes> file_bytes_max;
  /// Keys below these prefixes keep no history but their deletions: earlier states cannot be read (Range, watch()).
  /// Written to the file. A prefix that was there and is left out now ends all history.
  std::vector<std::string> without_history;
  /// Keys whose writes are taken when there is no space, as deletions are: heartbeats, so that nodes do not get lost
  /// with the space. They, and what leads to deletions, live on the reserve (sqlite/reserve.h).
  std::vector<std::string> urgent_prefixes = {"/registry/leases/", "/registry/minions/"};
  /// Monotonic time, for the age of history; empty: the system's.
  std::function<Instant()> clock;
  telemetry::Log log;
  /// Must outlive the store; nullptr: nothing is counted.
  telemetry::Registry* metrics = nullptr;
};

}  // namespace spillway::store
