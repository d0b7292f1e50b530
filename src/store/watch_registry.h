// The watches of one store: which keys each wants, and up to which revision it was notified. Both stores deliver
// through it, so that they deliver alike.
// Thread: loop. Invariant: a watcher sees strictly growing revisions; nothing reaches it after remove(). Callbacks may
// add and remove watches, also their own.
#pragma once

#include "store/store.h"

#include <map>
#include <string>
#include <vector>

namespace spillway::store {

class WatchRegistry {
 public:
  /// The watch starts out catching up: publish() passes it by until go_live().
  WatchId add(std::string prefix, Revision after, Watcher& watcher);
  void remove(WatchId id);
  void go_live(WatchId id);

  /// True if a watch is catching up.
  bool has_late() const;

  bool has(WatchId id) const { return watches_.contains(id); }

  /// The revision up to which the watch was notified; it must exist.
  Revision delivered_to(WatchId id) const;
  const std::string& prefix(WatchId id) const;

  /// Delivers to every live watch the changes that concern it. `changes` are in revision order.
  void publish(const std::vector<Change>& changes);
  /// Delivers to one watch, live or not, the changes that concern it; ignored when it has ended.
  void deliver(WatchId id, const std::vector<Change>& changes);
  /// Notifies the watch that no change up to `revision` concerns it; ignored when it is gone.
  void skip_to(WatchId id, Revision revision);
  /// Removes the watch, then notifies it of the end.
  void end(WatchId id, const Error& error);
  void end_all(const Error& error);

 private:
  struct Watch {
    std::string prefix;
    Revision delivered;
    Watcher* watcher;
    bool live = false;
  };

  std::vector<WatchId> ids() const;

  std::map<WatchId, Watch> watches_;
  WatchId last_id_ = 0;
};

}  // namespace spillway::store
