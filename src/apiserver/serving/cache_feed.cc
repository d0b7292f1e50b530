#include "apiserver/serving/cache_feed.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr std::string_view kRoot = "/registry/";
constexpr std::uint64_t kHistoryLoaded = 10'000;  // changes replayed at start, so that watches can resume
constexpr Duration kReadAgain = seconds(1);

}  // namespace

CacheFeed::~CacheFeed() {
  if (watching_) origin_.store().unwatch(*watching_);
}

void CacheFeed::start(std::move_only_function<void(Outcome)> loaded) {
  on_loaded_ = std::move(loaded);
  origin_.store().range({std::string(kRoot), {}, 1, std::nullopt},
                        [this](const Result<store::RangeResult>& head) { on_head(head); });
}

void CacheFeed::on_head(const Result<store::RangeResult>& head) {
  if (!head) return end(head.error());
  origin_.store().oldest_within(
      head->revision, kHistoryLoaded,
      [this, revision = head->revision](const Result<store::Revision>& base) { on_base(base, revision); });
}

void CacheFeed::on_base(const Result<store::Revision>& base, store::Revision head) {
  if (!base) return end(base.error());
  const store::Revision oldest(origin_.store().is_shared() ? 1 : 0);  // etcd counts from 1
  load_from(std::min(head, std::max(*base, oldest)), head);
}

void CacheFeed::load_from(store::Revision base, store::Revision head) {
  store::Range range{.prefix = std::string(kRoot), .start_after = {}, .at = base, .known_only = true};
  origin_.store().range(std::move(range),
                        [this, base, head](const Result<store::RangeResult>& state) { on_state(state, base, head); });
}

void CacheFeed::on_state(const Result<store::RangeResult>& state, store::Revision base, store::Revision head) {
  // A store that others compact may lose history meanwhile; it reports its new first revision when more is requested.
  if (!state && state.error().code == ErrorCode::kExpired && base != head) {
    const store::Revision left = origin_.store().compacted();
    return load_from(left <= base ? head : std::min(head, left), head);
  }
  if (!state) return end(state.error());
  core_.cache.load(origin_, *state, head);
  loading_to_ = head;
  watching_ = origin_.store().watch(std::string(kRoot), state->revision, origin_);
  on_progress();
}

void CacheFeed::on_progress() {
  if (loading_to_ && origin_.revision() >= *loading_to_) end({});
}

bool CacheFeed::on_lost(const Error& error) {
  watching_.reset();
  if (!origin_.store().is_shared() || !loaded_ || error.code != ErrorCode::kExpired) {
    lost_ = error.text();
    end(error);
    return false;
  }
  core_.log.warning("the history of the store is missing: reading its present state",
                    {{"store", origin_.label()}, {"error", error.text()}});
  rebasing_ = true;
  hub_.end_all(origin_);
  read_present();
  return true;
}

void CacheFeed::read_present() {
  origin_.store().range({std::string(kRoot), {}, 0, std::nullopt},
                        [this](const Result<store::RangeResult>& state) { on_present(state); });
}

void CacheFeed::on_present(const Result<store::RangeResult>& state) {
  if (!state) {
    core_.log.warning("the store cannot be read", {{"store", origin_.label()}, {"error", state.error().text()}});
    core_.timers.at(core_.now.mono + kReadAgain, [this] { read_present(); });
    return;
  }
  core_.cache.rebase(origin_, *state);
  rebasing_ = false;
  watching_ = origin_.store().watch(std::string(kRoot), state->revision, origin_);
}

void CacheFeed::end(Outcome outcome) {
  loading_to_.reset();
  if (outcome) loaded_ = true;
  if (on_loaded_) std::exchange(on_loaded_, nullptr)(std::move(outcome));
}

}  // namespace spillway::apiserver
