// Feeds the watch cache from one store: some history at the start, then the events of its watch; where history is
// missing, the present state is listed again. Thread: loop. Source: spec "etcd as the store", 4.6.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/read/watch_hub.h"
#include "base/error.h"
#include "store/store.h"

#include <functional>
#include <optional>
#include <string>

namespace spillway::apiserver {

class CacheFeed {
 public:
  CacheFeed(Core& core, WatchHub& hub, Origin& origin) : core_(core), hub_(hub), origin_(origin) {}

  ~CacheFeed();

  CacheFeed(const CacheFeed&) = delete;
  CacheFeed& operator=(const CacheFeed&) = delete;

  /// State some way back, then the history up to now. `loaded` is called once, with an error if the store cannot be
  /// read or was lost meanwhile.
  void start(std::move_only_function<void(Outcome)> loaded);

  /// Called after the cache has advanced.
  void on_progress();

  /// The store has ended its watch. True: only history is missing, and the present state is being read; the watches of
  /// clients have ended and begin anew, or resume where that is possible. False: the store sends nothing more.
  bool on_lost(const Error& error);

  /// True if the cache lacks changes of the store.
  bool is_loading() const { return !loaded_ || rebasing_; }

  /// True while the present state is being read after lost history, so that the cache is out of date.
  bool is_rebasing() const { return rebasing_; }

  /// The error with which the store ended for good; empty: it has not.
  const std::string& lost() const { return lost_; }

  const Origin& origin() const { return origin_; }

 private:
  // A start: the newest revision, the oldest one to replay from, the state then, the history since.
  void on_head(const Result<store::RangeResult>& head);
  void on_base(const Result<store::Revision>& base, store::Revision head);
  void load_from(store::Revision base, store::Revision head);
  void on_state(const Result<store::RangeResult>& state, store::Revision base, store::Revision head);
  // Reads the present state after history was lost.
  void read_present();
  void on_present(const Result<store::RangeResult>& state);
  void end(Outcome outcome);

  Core& core_;
  WatchHub& hub_;
  Origin& origin_;
  std::string lost_;
  std::move_only_function<void(Outcome)> on_loaded_;
  std::optional<store::WatchId> watching_;
  std::optional<store::Revision> loading_to_;
  bool loaded_ = false;
  bool rebasing_ = false;
};

}  // namespace spillway::apiserver
