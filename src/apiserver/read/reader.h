// Gets and lists: from the cache, at the present, at an older revision, or as soon as a newer one is reached.
// Lists are written a slice at a time, and long ones wait for their clients in between. Thread: loop. Bounds: a read
// waits at most 3 s for a revision; so many long lists are under way, so many more wait (long_reads.h). Source: spec
// "API server contract", 9.1-9.3.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/read/encoded_items.h"
#include "apiserver/read/list_job.h"
#include "apiserver/read/long_reads.h"
#include "apiserver/read/rendering.h"
#include "apiserver/read/selection.h"
#include "apiserver/read/watch_hub.h"
#include "apiserver/request/exchange.h"
#include "apiserver/request/request_options.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace spillway::apiserver {

class Reader {
 public:
  /// `token_life`: time after the first page of a list in which its continue tokens are valid; 0: as long as the store
  /// keeps their revision.
  Reader(Core& core, WatchHub& hub, SliceQueue& slices, LongReads& long_reads, Duration token_life)
      : core_(core),
        hub_(hub),
        slices_(slices),
        long_reads_(long_reads),
        token_life_(token_life),
        items_(core.timers, core.now) {}

  void get(const ExchangePtr& exchange);
  void list(const ExchangePtr& exchange);
  void watch(const ExchangePtr& exchange);

  /// Answers with one object, converted first if its kind has a conversion webhook.
  void show_object(const ExchangePtr& exchange, const Rendering& rendering, const ObjectPtr& object, int code);

  /// Answers with a list of these objects.
  void answer(const ExchangePtr& exchange, const Rendering& rendering, std::vector<ObjectPtr> objects);

  /// Items of lists that are kept for other lists.
  const EncodedItems& items() const { return items_; }

  /// The cache has moved on.
  void on_progress();

  /// Objects of the present state that match, in key order.
  /// kRequestEntityTooLarge: the selector has too many terms for so many objects.
  api::StatusResult<std::vector<ObjectPtr>> select(const Resource& resource, const Selection& selection) const;

 private:
  struct Page {
    Rendering rendering;
    Selection selection;
    std::size_t limit = 0;
    std::optional<store::Revision> at;  // nullopt: the present
    std::string start_after;
    std::optional<WallTime> began;  // the time of the list's first page
  };

  using Ready = std::move_only_function<void()>;

  /// Runs `ready` once the cache has reached the revision of the resource's store; answers 504 when it does not in
  /// time.
  void when_reached(const ExchangePtr& exchange, store::Revision revision, Ready ready);
  static void visit_candidates(const ResourceCache& cache, const Selection& selection, std::string_view start_after,
                               const std::function<bool(const ObjectPtr&)>& visit);

  Origin& origin_of(const Exchange& exchange) const { return core_.cache.of(*exchange.route.resource).origin(); }

  static bool visits_many(const ResourceCache& cache, const Page& page);
  void show(const ExchangePtr& exchange, Page page);
  using Conversion = api::StatusResult<std::vector<ObjectPtr>>;

  void show_converted_object(const ExchangePtr& exchange, const Rendering& rendering, const Conversion& converted,
                             int code) const;
  void answer_converted(const ExchangePtr& exchange, const Rendering& rendering, Conversion objects);
  void show_page(const ExchangePtr& exchange, Page page, store::Revision at, bool is_long,
                 const std::vector<ObjectPtr>& behind, Conversion converted);
  void show_converted(const ExchangePtr& exchange, Page page, store::Revision at, bool is_long);
  void show_from_store(const ExchangePtr& exchange, Page page);
  std::shared_ptr<ObjectSource> objects_of(const Exchange& exchange, const Page& page, store::Revision at);
  void begin(ListJob job, bool is_long);
  /// `place`: the place of a long list.
  void run_slices(const std::shared_ptr<ListJob>& job, std::optional<LongReads::Id> place);
  void wait_for_client(const std::shared_ptr<ListJob>& job, LongReads::Id place);
  void resume(LongReads::Id place);

  Core& core_;
  WatchHub& hub_;
  SliceQueue& slices_;
  LongReads& long_reads_;
  Duration token_life_;
  EncodedItems items_;
  std::map<LongReads::Id, std::shared_ptr<ListJob>> paused_;  // lists that wait for their clients

  struct Waiting {
    ExchangePtr exchange;
    Ready ready;
    TimerQueue::Id timer;
  };

  std::map<const Origin*, std::multimap<store::Revision, Waiting>> waiting_;  // read as WatchCache::origins()
};

}  // namespace spillway::apiserver
