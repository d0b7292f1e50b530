#include "apiserver/read/list_job.h"

#include "apiserver/read/stored_form.h"
#include "apiserver/request/request_options.h"

#include <utility>

namespace spillway::apiserver {

ObjectPtr ListJob::take_candidate(std::size_t index) {
  if (resource_ == nullptr) return std::move(candidates_[index]);
  const store::Entry entry = std::move(entries_[index]);
  Result<ObjectPtr> object =
      read_object(*resource_, entry.key.substr(resource_->storage.size()), *entry.value, entry.mod_revision);
  if (object) return *std::move(object);
  if (left_out_.size() < kLeftOutTold) left_out_.push_back(entry.key);
  return nullptr;
}

std::size_t ListJob::look_cost(std::size_t index) const {
  std::size_t cost = kLookCost + kLookCost * plan_.selection.fields.size() / 4;
  for (const api::LabelRequirement& requirement : plan_.selection.labels.requirements) {
    cost += kLookCost / 4 + requirement.values.size();
  }
  return resource_ == nullptr ? cost : cost + entries_[index].value->size();
}

bool ListJob::take(SliceBudget& budget, std::size_t cost) {
  if (!budget.take(cost)) return false;
  exchange_->effort += cost;
  return true;
}

/// True: all of them are chosen.
bool ListJob::choose(SliceBudget& budget) {
  if (all_chosen_) return true;
  const bool everything = plan_.selection.is_everything();
  for (; looked_at_ < candidate_count(); ++looked_at_) {
    if (!take(budget, look_cost(looked_at_))) return false;
    ObjectPtr object = take_candidate(looked_at_);
    if (!object || !(everything || plan_.selection.matches(*object))) continue;
    if (plan_.limit == 0 || chosen_.size() < plan_.limit) {
      chosen_bytes_ += object->text->size();
      chosen_.push_back(std::move(object));
      continue;
    }
    ++behind_;
    // Without selectors the rest is counted, else one more is enough to know.
    if (!everything) break;
    if (resource_ == nullptr) {
      behind_ += candidates_.size() - looked_at_ - 1;
      break;
    }
  }
  candidates_ = {};
  entries_ = {};
  all_chosen_ = true;
  meta_ = {plan_.at, {}, std::nullopt};
  if (behind_ != 0 && !chosen_.empty()) {
    meta_.continue_token = encode_continue({plan_.at, chosen_.back()->key});
    if (everything) meta_.remaining = behind_;
  }
  text_ = plan_.rendering.list_head(meta_);
  text_.reserve(text_.size() + chosen_bytes_ + chosen_.size() * plan_.rendering.overhead() + 16);
  return true;
}

/// True: all of them are written.
bool ListJob::write(SliceBudget& budget, WallTime now) {
  for (; written_ < chosen_.size(); ++written_) {
    const ObjectPtr& object = chosen_[written_];
    if (!take(budget, plan_.rendering.cost(*object))) return false;
    plan_.rendering.append_item(*object, written_ == 0, now, text_);
  }
  return true;
}

bool ListJob::step(SliceBudget& budget, WallTime now) {
  if (exchange_->finished()) return true;
  if (!choose(budget) || !write(budget, now)) return false;
  if (!left_out_.empty()) exchange_->warnings.push_back(left_out_warning(left_out_));
  exchange_->answer_object(200, plan_.rendering.end_list(meta_, std::move(text_)));
  return true;
}

}  // namespace spillway::apiserver
