// One list on its way to its answer: objects as they stood at one revision are chosen, then written, a slice at a time.
// Thread: loop. Source: spec "API server contract", 9.1-9.3.
#pragma once

#include "apiserver/read/rendering.h"
#include "apiserver/read/selection.h"
#include "apiserver/request/exchange.h"
#include "apiserver/resource/slice_queue.h"

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

namespace spillway::apiserver {

class ListJob {
 public:
  struct Plan {
    Rendering rendering;
    Selection selection;
    std::size_t limit = 0;  // 0: all
    store::Revision at;
  };

  /// `candidates`: in key order; whatever the selection does not match is passed by. `behind`: objects behind them that
  /// are known to match.
  ListJob(ExchangePtr exchange, Plan plan, std::vector<ObjectPtr> candidates, std::size_t behind)
      : exchange_(std::move(exchange)), plan_(std::move(plan)), candidates_(std::move(candidates)), behind_(behind) {}

  /// The same from what the store holds, which is read on the way.
  ListJob(ExchangePtr exchange, Plan plan, const Resource& resource, std::vector<store::Entry> entries)
      : exchange_(std::move(exchange)), plan_(std::move(plan)), resource_(&resource), entries_(std::move(entries)) {}

  /// One slice. True: answered, or nobody waits for the answer any more.
  bool step(SliceBudget& budget, WallTime now);

 private:
  std::size_t candidate_count() const { return resource_ != nullptr ? entries_.size() : candidates_.size(); }

  ObjectPtr take_candidate(std::size_t index);
  std::size_t look_cost(std::size_t index) const;
  bool take(SliceBudget& budget, std::size_t cost);
  bool choose(SliceBudget& budget);
  bool write(SliceBudget& budget, WallTime now);

  ExchangePtr exchange_;
  Plan plan_;
  const Resource* resource_ = nullptr;  // of the entries
  std::vector<store::Entry> entries_;
  std::vector<ObjectPtr> candidates_;
  std::size_t looked_at_ = 0;
  std::vector<ObjectPtr> chosen_;
  std::size_t chosen_bytes_ = 0;
  std::size_t behind_ = 0;
  std::vector<std::string> left_out_;  // keys of values that cannot be read
  bool all_chosen_ = false;
  ListMeta meta_;
  std::size_t written_ = 0;
  std::string text_;
};

}  // namespace spillway::apiserver
