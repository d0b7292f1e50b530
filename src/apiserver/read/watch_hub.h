// All watches: they start from a revision or from the present state, then get each event once, in order, as the diff of
// their selector; bookmarks; the end by time-out. A receiver that is full, or too far behind, loses its own watch only.
// The initial events of a watch are sent a slice at a time, as fast as its client takes them; until it has caught up,
// events wait for it in the cache's history. Thread: loop. Bounds: kAheadMax of the initial events wait for a client,
// which has kStartMax to take all of them, and may later be kLagMax or kWaitingMax behind; places for long starts are
// those of long lists (long_reads.h). Equal selectors are compared with an event once; those of more than kFreeSteps
// terms count against kStepsOfUser and kStepsOfAll, beyond which a watch is refused (429). Source: spec "API server
// contract", 9.5-9.11.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/read/long_reads.h"
#include "apiserver/read/object_source.h"
#include "apiserver/read/rendering.h"
#include "apiserver/read/selection.h"
#include "apiserver/request/exchange.h"
#include "apiserver/request/request_options.h"
#include "apiserver/resource/slice_queue.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace spillway::apiserver {

class WatchHub {
 public:
  /// Terms of a selector that cost nothing: as many as any client has that is not made to cost much.
  static constexpr std::size_t kFreeSteps = 16;
  /// Terms of different selectors of one user (the service accounts of a namespace are one), so that the longest
  /// selector that a request line holds can be watched once, and of all users: an event takes less than 2 ms for them.
  static constexpr std::size_t kStepsOfUser = 8'000;
  static constexpr std::size_t kStepsOfAll = 20'000;
  /// Watches of one user, counted alike: some 30 MiB. A controller manager has about a hundred, a node one for each
  /// object that its pods name. Without a bound the streams of all connections of one user, a hundred each, could be
  /// watches.
  static constexpr std::size_t kWatchesOfUser = 10'000;

  WatchHub(Core& core, SliceQueue& slices, LongReads& long_reads)
      : core_(core), slices_(slices), long_reads_(long_reads) {}

  /// Answers with the headers at once, then sends the initial events, then live ones.
  void open(ExchangePtr exchange, Rendering rendering, Selection selection, const ListOptions& options);
  void on_event(const ResourceCache& cache, const EventPtr& event);
  /// Ends every watch: clients resume by resourceVersion.
  void end_all();
  /// Ends the watches of objects in that store.
  void end_all(const Origin& origin);
  /// Ends the watches of one resource.
  void end_all(const ResourceCache& cache);

  std::size_t open_count() const { return watches_.size(); }

  /// Bytes on the heap of the open watches, without the exchanges of their clients.
  std::size_t heap_bytes() const;

  /// Comparisons of an object with a selector so far.
  std::size_t matches() const { return matches_; }

  /// Watches of all objects of the resource, or of those of a selector that nothing is found by.
  std::size_t general_count(const ResourceCache& cache) const;

 private:
  using WatchId = std::uint64_t;

  /// The client's lag, to within twice kLagMax.
  struct Lag {
    std::uint64_t written = 0;  // bytes of live events
    std::uint64_t mark = 0;     // value of `written` at `since`
    Instant since{};
  };

  /// A selection that all watches with an equal one share: an event is compared with it once.
  struct Shared {
    Selection selection;
    std::size_t hash = 0;
    std::size_t steps = 0;                       // terms that count against the bounds
    std::map<std::string, std::size_t> watches;  // by user
    std::uint64_t matched = 0;                   // the frames that `was` and `is` are about
    bool was = false;
    bool is = false;
  };

  using SharedPtr = std::shared_ptr<Shared>;

  struct Watch {
    WatchId id = 0;
    ExchangePtr exchange;
    Rendering rendering;
    SharedPtr shared;
    std::string user;  // the user charged for its steps
    const ResourceCache* cache = nullptr;
    store::Revision from;  // events up to this revision are not sent to the watch
    store::Revision sent;  // everything before has been sent or did not match; more of this revision may follow
    bool behind = false;   // the watch reads its start: events are not sent to it yet
    bool columns_sent = false;
    bool closed = false;
    bool converts = false;         // a webhook may have to convert its objects
    bool converting = false;       // until the answer, later events wait
    std::deque<EventPtr> pending;  // events to be converted, oldest first
    Lag lag;
    std::optional<LongReads::Id> place;  // for a long start
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
    std::shared_ptr<ObjectSource> objects;  // null: all initial objects were sent, or there are none
    std::vector<StateChange> changes;       // changes that are sent to a watch that resumes
    std::size_t next = 0;                   // the first in `changes` that has not been sent
    bool marker = false;                    // a bookmark marks the end of the initial events
    std::optional<LongReads::Id> place;     // the watch's place among the long reads
  };

  using Conversion = api::StatusResult<std::vector<ObjectPtr>>;
  using StartPtr = std::shared_ptr<Start>;

  /// The existing shared selection that equals this one, or a new one.
  SharedPtr share(Selection selection);
  /// False: its terms are too many for what the user, or all of them, watch already.
  /// Counts a watch of this user. Returns why there may be no more; empty: it counts until give_back().
  std::string_view take(const SharedPtr& shared, const std::string& user);
  void give_back(const SharedPtr& shared, const std::string& user);
  void match(Shared& shared, const Frames& frames);
  void start_from_state(const WatchPtr& watch, bool marker);
  Start state_of(Watch& watch, bool marker) const;
  void catch_up(const WatchPtr& watch, const StartPtr& start);
  void wait_for_client(const WatchPtr& watch, const StartPtr& start);
  bool is_too_far_behind(Watch& watch, std::size_t more_bytes) const;
  /// One slice each. True: there is nothing more, or the watch has ended.
  bool send_state(Watch& watch, Start& start, SliceBudget& budget);
  bool send_objects(Watch& watch, Start& start, SliceBudget& budget);
  bool send_changes(Watch& watch, Start& start, SliceBudget& budget);
  bool send_history(Watch& watch, Start& start, SliceBudget& budget);
  bool resume_by_state(Watch& watch, Start& start) const;
  void deliver(Watch& watch, Frames& frames);
  void send_event(Watch& watch, Frames& frames);
  void convert_state(const WatchPtr& watch, const StartPtr& start);
  void on_state(const WatchPtr& watch, const StartPtr& start, Conversion converted);
  void convert_pending(const WatchPtr& watch);
  void on_converted(const WatchPtr& watch, const std::vector<EventPtr>& events, const Conversion& converted);
  void send_converted(Watch& watch, const std::vector<EventPtr>& events, const std::vector<ObjectPtr>& objects);
  void fail_conversion(Watch& watch, const api::Status& status);
  bool write(Watch& watch, std::string text);
  void send_bookmark(Watch& watch);
  void arm(const WatchPtr& watch, const ListOptions& options);
  void arm_bookmark(const WatchPtr& watch, Instant due, Instant end);
  std::set<WatchId>& place_of(const Watch& watch);
  /// Forgets the watch; its exchange is ended by the caller.
  void drop(Watch& watch);
  void end(Watch& watch);
  void end_those(const std::function<bool(const Watch&)>& which);

  Core& core_;
  SliceQueue& slices_;
  LongReads& long_reads_;
  WatchId last_id_ = 0;
  std::uint64_t frames_ = 0;
  std::size_t matches_ = 0;
  std::unordered_multimap<std::size_t, SharedPtr> shared_;  // by hash
  std::map<std::string, std::size_t, std::less<>> steps_of_user_;
  std::map<std::string, std::size_t, std::less<>> watches_of_user_;
  std::size_t steps_ = 0;  // sum over all watches
  std::map<WatchId, WatchPtr> watches_;
  std::map<const ResourceCache*, Audience> audiences_;
};

}  // namespace spillway::apiserver
