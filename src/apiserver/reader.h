// Gets and lists: from the cache, at the present, at an older revision, or as soon as a newer one is reached.
// Thread: loop. Bounds: a read waits at most 3 s for a revision. Source: spec "API server contract", 9.1-9.3.
#pragma once

#include "apiserver/core.h"
#include "apiserver/exchange.h"
#include "apiserver/rendering.h"
#include "apiserver/request_options.h"
#include "apiserver/selection.h"
#include "apiserver/watch_hub.h"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace spillway::apiserver {

class Reader {
 public:
  Reader(Core& core, WatchHub& hub) : core_(core), hub_(hub) {}

  void get(const ExchangePtr& exchange);
  void list(const ExchangePtr& exchange);
  void watch(const ExchangePtr& exchange);

  /// The cache has moved on.
  void on_progress();

  /// Objects of the present state that match, in key order.
  std::vector<ObjectPtr> select(const Resource& resource, const Selection& selection) const;

 private:
  struct Page {
    Rendering rendering;
    Selection selection;
    std::size_t limit = 0;
    store::Revision at;
    std::string start_after;
  };

  using Ready = std::move_only_function<void()>;

  /// Runs `ready` once the cache has reached the revision; answers 504 when it does not in time.
  void when_reached(const ExchangePtr& exchange, store::Revision revision, Ready ready);
  static void visit_candidates(const ResourceCache& cache, const Selection& selection, std::string_view start_after,
                               const std::function<bool(const ObjectPtr&)>& visit);
  void show(const ExchangePtr& exchange, const Page& page);
  void show_from_store(const ExchangePtr& exchange, Page page);
  void answer(const ExchangePtr& exchange, const Page& page, std::vector<ObjectPtr> objects, std::size_t behind);

  Core& core_;
  WatchHub& hub_;

  struct Waiting {
    ExchangePtr exchange;
    Ready ready;
    TimerQueue::Id timer;
  };

  std::multimap<store::Revision, Waiting> waiting_;
};

}  // namespace spillway::apiserver
