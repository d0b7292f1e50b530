// Repairs reservations of servers that ended between reserving a name and writing its object (write/reservations.h):
// every three minutes, and soon after an object gave a name up, the keys are compared with the objects. A key that is
// marked as held is deleted after its object; a pending one is deleted when it has not changed for longer than any
// request takes; an object without its keys gets them. Only for a store that other servers write to. Thread: loop.
// Bounds: one list of the keys at a time, a page at a time; kCollectorWritesMax writes in flight. Source: spec "etcd as
// the store", 12.
#pragma once

#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/reservations.h"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace spillway::apiserver {

class ReservationKeeper final : public Collector {
 public:
  static constexpr Duration kCheckEvery = minutes(3);
  static constexpr Duration kPendingFor = minutes(2);  // a request is answered within one

  explicit ReservationKeeper(Core& core) : core_(core) {}

 private:
  struct Pending {
    store::Revision revision;
    Instant since;
  };

  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  void arm(Duration in);
  void read_page(const std::string& after);
  void on_page(const Result<store::RangeResult>& page);
  void check(const store::Entry& entry);
  void add_missing();
  void write(store::Write write);
  void on_written();

  Core& core_;
  bool due_ = false;      // a run is due
  bool reading_ = false;  // a list is being read
  std::optional<TimerQueue::Id> timer_;
  Instant armed_for_{};                     // when timer_ is due
  std::set<std::string> seen_;              // names with a key, of the list being read
  std::map<std::string, Pending> pending_;  // by name, of the last lists
  std::deque<store::Write> wanted_;
  std::size_t writing_ = 0;
};

}  // namespace spillway::apiserver
