// Everybody who watches: start from a revision or from the present state, then each event once, in order, as the diff
// of its selector; bookmarks; the end by time-out. A receiver that is full loses its watch, never holds up the others.
// Thread: loop. Source: spec "API server contract", 9.5-9.11.
#pragma once

#include "apiserver/core.h"
#include "apiserver/exchange.h"
#include "apiserver/rendering.h"
#include "apiserver/request_options.h"
#include "apiserver/selection.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::apiserver {

class WatchHub {
 public:
  explicit WatchHub(Core& core) : core_(core) {}

  /// Answers headers at once, then what is due from the start, then events as they come.
  void open(ExchangePtr exchange, Rendering rendering, Selection selection, const ListOptions& options);
  void on_event(const ResourceCache& cache, const EventPtr& event);
  /// Ends every watch: clients resume by resourceVersion.
  void end_all();

  std::size_t open_count() const { return watches_.size(); }

 private:
  using WatchId = std::uint64_t;

  struct Watch {
    WatchId id = 0;
    ExchangePtr exchange;
    Rendering rendering;
    Selection selection;
    const ResourceCache* cache = nullptr;
    store::Revision sent;  // everything up to here has been sent or did not match
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

  void send_state(Watch& watch, bool marker);
  bool send_history(Watch& watch);
  void deliver(Watch& watch, Frames& frames);
  bool write(Watch& watch, std::string text);
  void send_bookmark(Watch& watch, bool initial_end);
  void arm(const WatchPtr& watch, const ListOptions& options);
  void arm_bookmark(const WatchPtr& watch, Instant due, Instant end);
  std::set<WatchId>& place_of(const Watch& watch);
  /// Forgets the watch; its exchange is ended by the caller.
  void drop(Watch& watch);
  void end(Watch& watch);

  Core& core_;
  WatchId last_id_ = 0;
  std::map<WatchId, WatchPtr> watches_;
  std::map<const ResourceCache*, Audience> audiences_;
};

}  // namespace spillway::apiserver
