// Everybody who watches: start from a revision or from the present state, then each event once, in order, as the diff
// of its selector; bookmarks; the end by time-out. A receiver that is full loses its watch, nobody else's.
// What a watch starts with is sent a slice at a time; until it has caught up, events wait for it in the cache's
// history. Thread: loop. Source: spec "API server contract", 9.5-9.11.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/read/rendering.h"
#include "apiserver/read/selection.h"
#include "apiserver/request/exchange.h"
#include "apiserver/request/request_options.h"
#include "apiserver/resource/slice_queue.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::apiserver {

class WatchHub {
 public:
  WatchHub(Core& core, SliceQueue& slices) : core_(core), slices_(slices) {}

  /// Answers headers at once, then what is due from the start, then events as they come.
  void open(ExchangePtr exchange, Rendering rendering, Selection selection, const ListOptions& options);
  void on_event(const ResourceCache& cache, const EventPtr& event);
  /// Ends every watch: clients resume by resourceVersion.
  void end_all();

  std::size_t open_count() const { return watches_.size(); }

  /// Watches of all objects of the resource, or of those of a selector that nothing is found by.
  std::size_t general_count(const ResourceCache& cache) const;

 private:
  using WatchId = std::uint64_t;

  struct Watch {
    WatchId id = 0;
    ExchangePtr exchange;
    Rendering rendering;
    Selection selection;
    const ResourceCache* cache = nullptr;
    store::Revision from;  // events up to here are not for it
    store::Revision sent;  // everything before has been sent or did not match; of this revision more may come
    bool behind = false;   // it is catching up: events are not for it yet
    bool columns_sent = false;
    bool closed = false;
    TimerQueue::Id end_timer;
    std::optional<TimerQueue::Id> bookmark_timer;
  };

  using WatchPtr = std::shared_ptr<Watch>;

  /// Watches of one resource, by what narrows them.
  struct Audience {
    std::set<WatchId> general;
    std::map<std::string, std::set<WatchId>, std::less<>> by_name;
    std::map<std::string, std::set<WatchId>, std::less<>> by_first_field;
  };

  class Frames;

  /// The state a watch starts with or resumes by, as far as it has not been sent.
  struct Start {
    std::vector<StateChange> objects;
    std::size_t next = 0;
    bool marker = false;  // a bookmark marks its end
  };

  /// A watch that has to wait until fewer others start.
  struct WaitingStart {
    std::weak_ptr<Watch> watch;
    bool marker = false;
  };

  void start_from_state(const WatchPtr& watch, bool marker);
  void start_waiting();
  Start state_of(Watch& watch, bool marker) const;
  void catch_up(const WatchPtr& watch, Start start);
  /// One slice each. True: there is nothing more, or the watch has ended.
  bool send_state(Watch& watch, Start& start, SliceBudget& budget);
  bool send_history(Watch& watch, Start& start, SliceBudget& budget);
  bool resume_by_state(Watch& watch, Start& start) const;
  void deliver(Watch& watch, Frames& frames);
  bool write(Watch& watch, std::string text);
  void send_bookmark(Watch& watch);
  void arm(const WatchPtr& watch, const ListOptions& options);
  void arm_bookmark(const WatchPtr& watch, Instant due, Instant end);
  std::set<WatchId>& place_of(const Watch& watch);
  /// Forgets the watch; its exchange is ended by the caller.
  void drop(Watch& watch);
  void end(Watch& watch);

  Core& core_;
  SliceQueue& slices_;
  WatchId last_id_ = 0;
  std::map<WatchId, WatchPtr> watches_;
  std::map<const ResourceCache*, Audience> audiences_;
  std::size_t long_starts_ = 0;
  std::deque<WaitingStart> waiting_starts_;  // at most one per open watch
};

}  // namespace spillway::apiserver
