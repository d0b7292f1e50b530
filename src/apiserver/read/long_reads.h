// Places for lists, and starts of watches, that are long: each holds the objects as they were when it began. Without a
// free place the next reads wait; a read whose client accepts nothing is then ended for them, first the one that has
// waited for its client longest.
// Thread: loop. Bounds: kPlaces in all, kPlacesOfClient for one client, kWholePlaces for answers that are held whole;
// kWaitingMax wait. Source: ADR-0021.
#pragma once

#include "apiserver/resource/timer_queue.h"
#include "base/time.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace spillway::apiserver {

class LongReads {
 public:
  static constexpr std::size_t kPlaces = 64;
  static constexpr std::size_t kPlacesOfClient = 16;
  static constexpr std::size_t kWholePlaces = 4;
  static constexpr std::size_t kWaitingMax = 1'024;
  /// A client may hold a place this long without reading anything while others wait.
  static constexpr Duration kPauseMax = seconds(5);

  using Id = std::uint64_t;

  /// The client of a read, and whether its answer is held until it is complete.
  struct Reader {
    std::string client;
    bool whole = false;
  };

  /// `now`: the address of the time of the present event.
  LongReads(TimerQueue& timers, const Now& now) : timers_(timers), now_(now) {}

  bool has_place(const Reader& reader) const;

  /// Calls `begin` when there is a place; the reader may decline it. False: too many reads wait.
  bool wait(Reader reader, std::function<void()> begin);

  /// `end` is called at most once, when other reads need the place; it releases the place.
  Id take(const Reader& reader, std::function<void()> end);
  /// pause(): the read waits for its client from now on. resume(): it continues.
  void pause(Id id);
  void resume(Id id);
  /// Releases the place and starts waiting reads. Does nothing if it is free already.
  void give_back(Id id);

  std::size_t taken() const { return taken_.size(); }

  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Place {
    Reader reader;
    std::function<void()> end;
    std::optional<Instant> paused;
  };

  struct Waiting {
    Reader reader;
    std::function<void()> begin;
  };

  void begin_waiting();
  bool is_in_the_way(const Place& place) const;
  void arm();
  void check_places();

  TimerQueue& timers_;
  const Now& now_;
  Id last_id_ = 0;
  std::map<Id, Place> taken_;
  std::map<std::string, std::size_t> of_client_;
  std::size_t whole_ = 0;
  std::deque<Waiting> waiting_;
  bool armed_ = false;
  bool beginning_ = false;
};

}  // namespace spillway::apiserver
