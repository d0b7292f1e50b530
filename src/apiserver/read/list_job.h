// Executes one list request: selects the objects of one revision, then writes them, a slice at a time. A long list is
// sent in pieces while it is written, if its client accepts that; only facts that the first piece needs are computed
// first: the end of the page, the number of objects behind it, and in protobuf the total length of the items.
// Thread: loop. Bounds: kPieceBytes of text, and kAheadMax that wait for the client. Source: spec "API server
// contract", 9.1-9.3; ADR-0021.
#pragma once

#include "apiserver/read/encoded_items.h"
#include "apiserver/read/object_source.h"
#include "apiserver/read/rendering.h"
#include "apiserver/read/selection.h"
#include "apiserver/request/exchange.h"
#include "apiserver/resource/slice_queue.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apiserver {

class ListJob {
 public:
  /// Bytes of text that are handed to the connection at a time.
  static constexpr std::size_t kPieceBytes = std::size_t{256} * 1024;
  /// A long list pauses while that many bytes wait for its client.
  static constexpr std::size_t kAheadMax = std::size_t{1} << 20U;

  struct Plan {
    Rendering rendering;
    Selection selection;
    std::size_t limit = 0;  // 0: all
    store::Revision at;
    std::optional<WallTime> began = {};  // the time of the list's first page; nullopt: a token does not expire by age
  };

  /// The result of a step.
  enum class Step {
    kMore,   // more slices are needed
    kWaits,  // the client has to receive what was sent
    kDone,   // answered, or the client has disconnected
  };

  /// Selects the objects that match among the given ones.
  ListJob(ExchangePtr exchange, Plan plan, std::shared_ptr<ObjectSource> objects)
      : exchange_(std::move(exchange)), plan_(std::move(plan)), objects_(std::move(objects)) {}

  /// Selects from the objects of a store, which are read meanwhile.
  ListJob(ExchangePtr exchange, Plan plan, const Resource& resource, std::vector<store::Entry> entries)
      : exchange_(std::move(exchange)), plan_(std::move(plan)), resource_(&resource), entries_(std::move(entries)) {}

  /// True if the source will be rewound.
  static bool passes_twice(const Exchange& exchange, const Rendering& rendering, std::size_t limit) {
    return limit == 0 && rendering.is_protobuf() && exchange.takes_pieces();
  }

  /// The list waits while its client is behind. Without this it continues, as a list near its end may.
  void keep_pace() { keeps_pace_ = true; }

  /// Items are taken from `items`, which must outlive the list, and kept there.
  void share(EncodedItems& items) { items_ = &items; }

  const ExchangePtr& exchange() const { return exchange_; }

  /// Called if the client disconnects, or the list is cut, before its end.
  void on_drop(std::function<void()> drop) { drop_ = std::move(drop); }

  /// Executes one slice.
  Step step(SliceBudget& budget, WallTime now);

 private:
  // Steps, each executed in slices; true: the step is done.
  bool read(SliceBudget& budget);
  bool choose(SliceBudget& budget);
  bool measure(SliceBudget& budget);
  bool write(SliceBudget& budget, WallTime now);

  std::size_t visit_cost() const;
  bool take(SliceBudget& budget, std::size_t cost);

  bool matches(const ObjectPtr& object) const { return all_match_ || plan_.selection.matches(*object); }

  bool must_choose() const { return plan_.limit != 0 || !exchange_->takes_pieces(); }

  void end_choice();
  std::size_t item_bytes(const ObjectPtr& object);
  void append_item(const ObjectPtr& object, WallTime now);
  void begin_text();
  Step write_out(bool last);
  void finish();

  ExchangePtr exchange_;
  Plan plan_;
  std::function<void()> drop_;
  bool keeps_pace_ = false;
  EncodedItems* items_ = nullptr;
  std::shared_ptr<ObjectSource> objects_;

  // Read from the store.
  const Resource* resource_ = nullptr;
  std::vector<store::Entry> entries_;
  std::size_t read_ = 0;
  std::vector<ObjectPtr> found_;
  std::vector<std::string> left_out_;  // keys of values that cannot be read

  bool all_match_ = false;
  bool chosen_ = false;
  std::vector<ObjectPtr> choice_;
  std::size_t choice_bytes_ = 0;
  std::size_t behind_ = 0;

  bool measured_ = false;
  std::size_t item_bytes_ = 0;  // in protobuf

  ListMeta meta_;
  bool begun_ = false;   // text_ begins with the head of the list
  bool opened_ = false;  // the answer is sent in pieces
  bool first_ = true;    // no item is written
  std::string text_;
  std::string tail_;
};

}  // namespace spillway::apiserver
