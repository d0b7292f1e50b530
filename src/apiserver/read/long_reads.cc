#include "apiserver/read/long_reads.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr Duration kCheckEvery = seconds(1);

}  // namespace

bool LongReads::has_place(const Reader& reader) const {
  if (taken_.size() >= kPlaces || (reader.whole && whole_ >= kWholePlaces)) return false;
  const auto found = of_client_.find(reader.client);
  return found == of_client_.end() || found->second < kPlacesOfClient;
}

bool LongReads::wait(Reader reader, std::function<void()> begin) {
  if (waiting_.size() >= kWaitingMax) return false;
  waiting_.push_back({std::move(reader), std::move(begin)});
  arm();
  return true;
}

LongReads::Id LongReads::take(const Reader& reader, std::function<void()> end) {
  taken_.emplace(++last_id_, Place{reader, std::move(end), std::nullopt});
  ++of_client_[reader.client];
  if (reader.whole) ++whole_;
  return last_id_;
}

void LongReads::pause(Id id) {
  const auto found = taken_.find(id);
  if (found != taken_.end() && !found->second.paused) found->second.paused = now_.mono;
}

void LongReads::resume(Id id) {
  const auto found = taken_.find(id);
  if (found != taken_.end()) found->second.paused.reset();
}

void LongReads::give_back(Id id) {
  const auto found = taken_.find(id);
  if (found == taken_.end()) return;
  const Place place = std::move(found->second);  // last: its destruction may call this object
  taken_.erase(found);
  const auto client = of_client_.find(place.reader.client);
  if (--client->second == 0) of_client_.erase(client);
  if (place.reader.whole) --whole_;
  begin_waiting();
}

void LongReads::begin_waiting() {
  if (std::exchange(beginning_, true)) return;
  for (std::size_t at = 0; at < waiting_.size();) {
    if (!has_place(waiting_[at].reader)) {
      ++at;
      continue;
    }
    const std::function<void()> begin = std::move(waiting_[at].begin);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
    begin();
  }
  beginning_ = false;
}

/// True if a waiting reader needs exactly this place.
bool LongReads::is_in_the_way(const Place& place) const {
  if (taken_.size() >= kPlaces) return true;
  const std::string& client = place.reader.client;
  if (of_client_.at(client) < kPlacesOfClient) return false;
  return std::ranges::any_of(waiting_, [&](const Waiting& waiting) { return waiting.reader.client == client; });
}

void LongReads::arm() {
  if (std::exchange(armed_, true)) return;
  timers_.at(now_.mono + kCheckEvery, [this] { check_places(); });
}

void LongReads::check_places() {
  armed_ = false;
  if (waiting_.empty()) return;
  const auto pause = [this](const auto& entry) {
    return is_in_the_way(entry.second) ? entry.second.paused.value_or(Instant::max()) : Instant::max();
  };
  const auto longest = std::ranges::min_element(taken_, {}, pause);
  if (longest != taken_.end() && pause(*longest) <= now_.mono - kPauseMax) {
    if (const auto end = std::exchange(longest->second.end, nullptr)) end();
  }
  begin_waiting();
  if (!waiting_.empty()) arm();
}

}  // namespace spillway::apiserver
