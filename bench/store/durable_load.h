// Writers that renew leases in a SQLite store, each one again as soon as its write was acknowledged as being on the
// disk.
// Thread: the caller's, which is the loop.
#pragma once

#include "base/time.h"
#include "store/sqlite/sqlite_store.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace spillway::store {

/// A loop that only runs the tasks that the store posts.
class BenchLoop {
 public:
  using Task = std::move_only_function<void()>;

  Poster poster();
  void run_until(const std::function<bool()>& done);

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
};

struct LoadResult {
  double writes_per_second = 0;
  double p50_milliseconds = 0;
  double p99_milliseconds = 0;
  double max_milliseconds = 0;
  int refused = 0;  // more was offered than the store queues
};

struct Load {
  int writers = 1;
  int leases = 2'000;
  std::size_t value_bytes = 800;
  int writes = 1'000;
  /// 0: every writer as fast as it can; else writes are spread evenly over time and queue up when the store is behind.
  double offered_per_second = 0;
};

std::string lease_key(int lease);
Value lease_value(std::size_t bytes, int renewal);

/// Creates the leases of `load`.
void create_leases(Store& store, BenchLoop& loop, const Load& load);
LoadResult renew_leases(Store& store, BenchLoop& loop, const Load& load);

}  // namespace spillway::store
