// Counts the memory of the cache by owner, a slice at a time, for the page /debug/memory. What changes between two
// slices is counted as it is found. Thread: loop. Bounds: a dozen rows.
#pragma once

#include "apiserver/read/watch_cache.h"
#include "apiserver/resource/slice_queue.h"
#include "telemetry/memory_table.h"

#include <cstddef>
#include <string>

namespace spillway::apiserver {

class MemoryAccount {
 public:
  /// `cache` must outlive the account.
  explicit MemoryAccount(const WatchCache& cache) : cache_(cache) {}

  /// One slice. True: everything is counted.
  bool step(SliceBudget& budget);

  /// Texts of objects, their other fields, parsed documents, indexes, former values. Bytes are those of the heap.
  telemetry::MemoryRows rows() const;

 private:
  struct Sum {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;

    void add(std::size_t more) {
      ++count;
      bytes += more;
    }
  };

  bool count_objects(const ResourceCache& cache, SliceBudget& budget);
  bool count_history(const ResourceCache& cache, SliceBudget& budget);
  void count_object(const ResourceCache& cache, const StoredObject& object);
  void count_event(const CacheEvent& event);

  const WatchCache& cache_;
  std::size_t resource_ = 0;  // the place in WatchCache::all() that is being counted
  std::string key_;           // key of the last object of the resource that was counted
  store::Revision revision_;  // revision of the last event of the resource that was counted
  bool objects_counted_ = false;

  Sum texts_, at_rest_, fields_, documents_, indexes_, events_, former_;
};

}  // namespace spillway::apiserver
