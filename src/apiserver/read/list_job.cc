#include "apiserver/read/list_job.h"

#include "apiserver/read/stored_form.h"
#include "apiserver/request/request_options.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

/// Counts objects without reading them.
constexpr std::size_t kCountCost = kVisitCost / 8;

}  // namespace

std::size_t ListJob::visit_cost() const {
  return all_match_ ? kVisitCost : plan_.selection.visit_cost();
}

bool ListJob::take(SliceBudget& budget, std::size_t cost) {
  if (!budget.take(cost)) return false;
  exchange_->effort += cost;
  return true;
}

bool ListJob::read(SliceBudget& budget) {
  if (resource_ == nullptr) return true;
  for (; read_ < entries_.size(); ++read_) {
    if (!take(budget, visit_cost() + entries_[read_].value->size())) return false;
    const store::Entry entry = std::move(entries_[read_]);
    Result<ObjectPtr> object =
        read_object(*resource_, entry.key.substr(resource_->storage.size()), entry.value, entry.mod_revision);
    if (!object) {
      if (left_out_.size() < kLeftOutReported) left_out_.push_back(entry.key);
    } else if (matches(*object)) {
      found_.push_back(*std::move(object));
    }
  }
  if (!left_out_.empty()) exchange_->warnings.push_back(left_out_warning(left_out_));
  objects_ = std::make_shared<GivenObjects>(std::move(found_));
  entries_ = {};
  resource_ = nullptr;
  return true;
}

/// Finds the objects of the page, and whether more follow.
bool ListJob::choose(SliceBudget& budget) {
  if (chosen_) return true;
  if (!must_choose()) {
    chosen_ = true;
    meta_ = {plan_.at, {}, std::nullopt};
    return true;
  }
  const bool everything = plan_.selection.is_everything();
  bool cut_short = false;  // one more is enough to see that there are more
  const bool all = objects_->visit([&](const ObjectPtr& object) {
    const bool full = plan_.limit != 0 && choice_.size() >= plan_.limit;
    if (cut_short || !take(budget, full && everything ? kCountCost : visit_cost())) return false;
    if (!matches(object)) return true;
    if (full) {
      ++behind_;
      cut_short = !everything;  // without selectors the rest is counted
      return true;
    }
    choice_bytes_ += object->text->size();
    choice_.push_back(object);
    return true;
  });
  if (!all && !cut_short) return false;
  end_choice();
  return true;
}

void ListJob::end_choice() {
  meta_ = {plan_.at, {}, std::nullopt};
  if (behind_ != 0 && !choice_.empty()) {
    meta_.continue_token = encode_continue({plan_.at, choice_.back()->key, plan_.began});
    if (plan_.selection.is_everything()) meta_.remaining = behind_;
  }
  chosen_ = all_match_ = true;
  if (!exchange_->takes_pieces()) {
    text_.reserve(choice_bytes_ + (choice_.size() + 1) * plan_.rendering.overhead());
  }
  objects_ = std::make_shared<GivenObjects>(std::exchange(choice_, {}));
}

std::size_t ListJob::item_bytes(const ObjectPtr& object) {
  const Rendering& rendering = plan_.rendering;
  if (items_ == nullptr || !rendering.shares_items() || rendering.knows_item_bytes(*object)) {
    return rendering.item_bytes(*object);
  }
  store::Value item = rendering.item(*object);
  const std::size_t bytes = item->size();
  items_->keep(object, std::move(item));
  return bytes;
}

void ListJob::append_item(const ObjectPtr& object, WallTime now) {
  if (items_ != nullptr && plan_.rendering.shares_items()) {
    store::Value item = plan_.rendering.item(*object);
    text_ += *item;
    items_->keep(object, std::move(item));
  } else {
    plan_.rendering.append_item(*object, first_, now, text_);
  }
  first_ = false;
}

bool ListJob::measure(SliceBudget& budget) {
  if (measured_) return true;
  if (plan_.rendering.is_protobuf() && exchange_->takes_pieces()) {
    const Rendering& rendering = plan_.rendering;
    const bool all = objects_->visit([&](const ObjectPtr& object) {
      const bool of_list = matches(object);
      const std::size_t cost = of_list && !rendering.knows_item_bytes(*object) ? rendering.cost(*object) : visit_cost();
      if (!take(budget, cost)) return false;
      if (of_list) item_bytes_ += item_bytes(object);
      return true;
    });
    if (!all) return false;
    objects_->rewind();
  }
  measured_ = true;
  return true;
}

void ListJob::begin_text() {
  begun_ = true;
  if (!exchange_->takes_pieces()) {
    text_ += plan_.rendering.list_head(meta_);
    return;
  }
  Rendering::ListFrame frame = plan_.rendering.list_frame(meta_, item_bytes_);
  text_ = std::move(frame.head);
  tail_ = std::move(frame.tail);
  text_.reserve(kPieceBytes + kPieceBytes / 8);
}

bool ListJob::write(SliceBudget& budget, WallTime now) {
  const bool in_pieces = exchange_->takes_pieces();
  const std::size_t most = opened_ ? kPieceBytes : std::max(kPieceBytes, exchange_->whole_bytes_min());
  return objects_->visit([&](const ObjectPtr& object) {
    if (in_pieces && text_.size() >= most) return false;
    const bool of_list = matches(object);
    if (!take(budget, of_list ? plan_.rendering.cost(*object) : visit_cost())) return false;
    if (!of_list) return true;
    append_item(object, now);
    return true;
  });
}

/// Sends the bytes written so far, once there are enough.
ListJob::Step ListJob::write_out(bool last) {
  if (last) text_ += tail_;
  const std::size_t least = opened_ && !last ? kPieceBytes : exchange_->whole_bytes_min();
  if (!(opened_ && last) && text_.size() < least) return last ? Step::kDone : Step::kMore;
  if (!std::exchange(opened_, true)) exchange_->open_pieces(std::exchange(drop_, nullptr));
  if (!exchange_->write(std::make_shared<const std::string>(std::exchange(text_, {})))) {
    exchange_->cut();
    return Step::kDone;
  }
  if (last) {
    exchange_->end();
    return Step::kDone;
  }
  text_.reserve(kPieceBytes + kPieceBytes / 8);
  return keeps_pace_ && exchange_->waiting_bytes() >= kAheadMax ? Step::kWaits : Step::kMore;
}

/// Sends an answer that is short enough as a whole.
void ListJob::finish() {
  if (tail_.empty()) {
    text_ = plan_.rendering.end_list(meta_, std::move(text_));
  } else if (!plan_.rendering.is_protobuf()) {
    text_.pop_back();  // the newline is the exchange's
  }
  exchange_->answer_object(200, std::move(text_));
}

ListJob::Step ListJob::step(SliceBudget& budget, WallTime now) {
  if (exchange_->finished()) return Step::kDone;
  if (!read(budget) || !choose(budget) || !measure(budget)) return Step::kMore;
  if (!begun_) begin_text();
  const bool last = write(budget, now);
  if (!exchange_->takes_pieces()) {
    if (!last) return Step::kMore;
  } else if (const Step step = write_out(last); step != Step::kDone || opened_) {
    return step;
  }
  finish();
  return Step::kDone;
}

}  // namespace spillway::apiserver
