// The progress of the server: its stores are being loaded, it serves, it shuts down, or a store is lost. Requests are
// refused by it, and health checks report it. It feeds the cache from the stores.
// Thread: loop. Bounds: one feed for each store.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/read/watch_hub.h"
#include "apiserver/serving/cache_feed.h"
#include "base/error.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace spillway::apiserver {

class ServingState {
 public:
  ServingState(Core& core, WatchHub& hub);
  ServingState(const ServingState&) = delete;
  ServingState& operator=(const ServingState&) = delete;

  /// Loads all stores into the cache. `loaded` is called once, with an error as soon as one cannot be read.
  void load(std::move_only_function<void(Outcome)> loaded);

  /// All stores are loaded, and the objects of every cluster exist: requests are served from now on.
  void begin_serving() { serving_ = true; }

  /// The server cannot serve.
  void fail(const Error& error) { lost_ = error.text(); }

  /// New requests are refused from now on.
  void begin_shutdown() { stopping_ = true; }

  bool is_serving() const { return serving_; }

  bool is_shutting_down() const { return stopping_; }

  /// The error with which the main store, or the start, ended for good; empty: there is none.
  const std::string& lost() const { return lost_; }

  /// The reason why no request is served; empty if requests are served.
  std::string refusal() const;
  /// As above, for one resource. `resource` null: none.
  std::string refusal(const Resource* resource) const;

  /// The feeds, in the order of the cache's origins.
  const std::vector<std::unique_ptr<CacheFeed>>& feeds() const { return feeds_; }

  /// Called after the cache has advanced.
  void on_progress();

  /// A store has ended its watch: unless the feed can read it again, its watches end.
  void on_lost(Origin& origin, const Error& error);

 private:
  void on_loaded(const Outcome& outcome);

  Core& core_;
  WatchHub& hub_;
  std::vector<std::unique_ptr<CacheFeed>> feeds_;
  std::size_t loading_ = 0;  // feeds that have not finished their first start
  std::move_only_function<void(Outcome)> loaded_;
  bool serving_ = false;
  bool stopping_ = false;
  std::string lost_;
};

}  // namespace spillway::apiserver
