// What the server does by itself, driven by its own cache: an engine part that notes events and later acts on them
// through the same write path as everybody else. Thread: loop.
#pragma once

#include "apiserver/read/watch_cache.h"

#include <cstddef>

namespace spillway::apiserver {

class Collector {
 public:
  virtual ~Collector() = default;

  /// The cache is complete: take stock of what is there.
  virtual void load() = 0;
  /// Notes what the event means. Must not write.
  virtual void on_event(const ResourceCache& cache, const EventPtr& event) = 0;
  /// Acts on what was noted.
  virtual void run() = 0;
};

/// At most this many writes of one collector are on their way to the store.
inline constexpr std::size_t kCollectorWritesMax = 128;

}  // namespace spillway::apiserver
