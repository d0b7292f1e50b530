// The base of the server's own controllers, driven by its cache: an engine part that records events and later acts on
// them through the same write path as any client. One of several servers of a store acts at a time: a part is begun and
// ended, and may be begun again. Thread: loop.
#pragma once

#include "apiserver/read/watch_cache.h"

#include <cstddef>

namespace spillway::apiserver {

class Collector {
 public:
  virtual ~Collector() = default;

  /// The cache is complete: observes what exists, and acts from now on.
  void begin() {
    acts_ = true;
    load();
    act();
  }

  /// Stops beginning writes. Those on their way to the store are completed.
  void end() { acts_ = false; }

  void see(const ResourceCache& cache, const EventPtr& event) {
    if (acts_) on_event(cache, event);
  }

  void run() {
    if (acts_) act();
  }

 protected:
  /// False: nothing may be written. Timers of a collector check this before they write.
  bool acts() const { return acts_; }

 private:
  /// Observes all objects and forgets the marks of an earlier term. Must not write.
  virtual void load() = 0;
  /// Marks what the event makes necessary. Must not write.
  virtual void on_event(const ResourceCache& cache, const EventPtr& event) = 0;
  /// Acts on what was marked.
  virtual void act() = 0;

  bool acts_ = false;
};

/// At most this many writes of one collector are on their way to the store.
inline constexpr std::size_t kCollectorWritesMax = 128;

}  // namespace spillway::apiserver
