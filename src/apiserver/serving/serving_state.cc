#include "apiserver/serving/serving_state.h"

#include <utility>

namespace spillway::apiserver {

ServingState::ServingState(Core& core, WatchHub& hub) : core_(core), hub_(hub) {
  for (const auto& origin : core_.cache.origins()) feeds_.push_back(std::make_unique<CacheFeed>(core_, hub_, *origin));
}

void ServingState::load(std::move_only_function<void(Outcome)> loaded) {
  loaded_ = std::move(loaded);
  loading_ = feeds_.size();
  for (const auto& feed : feeds_) feed->start([this](const Outcome& outcome) { on_loaded(outcome); });
}

void ServingState::on_loaded(const Outcome& outcome) {
  if (!outcome) {
    fail(outcome.error());
  } else if (--loading_ != 0) {
    return;
  }
  if (loaded_) std::exchange(loaded_, nullptr)(outcome);
}

std::string ServingState::refusal() const {
  if (!lost_.empty()) return lost_;
  if (stopping_) return "shutting down";
  return serving_ && !feeds_.front()->is_rebasing() ? "" : "loading";
}

std::string ServingState::refusal(const Resource* resource) const {
  if (std::string why = refusal(); !why.empty() || resource == nullptr || !resource->stored()) return why;
  const CacheFeed& feed = *feeds_.at(core_.cache.of(*resource).origin().index());
  if (!feed.lost().empty()) return feed.lost();
  return feed.is_rebasing() ? "loading" : "";
}

void ServingState::on_progress() {
  for (const auto& feed : feeds_) feed->on_progress();
}

void ServingState::on_lost(Origin& origin, const Error& error) {
  if (feeds_.at(origin.index())->on_lost(error)) return;
  core_.log.error("the store is lost", {{"store", origin.label()}, {"error", error.text()}});
  if (!origin.is_main()) return hub_.end_all(origin);
  lost_ = error.text();
  hub_.end_all();
}

}  // namespace spillway::apiserver
