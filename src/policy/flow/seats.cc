#include "policy/flow/seats.h"

#include <algorithm>

namespace spillway::flow {
namespace {

constexpr std::size_t kObjectsPerSeat = 100;
constexpr std::size_t kWatchersPerSeat = 10;
constexpr int kPercentOfLevel = 15;
constexpr Duration kRequestTime = seconds(60);
constexpr int kPartThatWaits = 4;
constexpr Duration kWaitMax = seconds(60);

}  // namespace

int list_seats(std::size_t objects) {
  const std::size_t most = kSeatsMax * kObjectsPerSeat;
  return std::max(1, static_cast<int>((std::min(objects, most) + kObjectsPerSeat - 1) / kObjectsPerSeat));
}

int write_seats(std::size_t watchers) {
  return std::max(1, static_cast<int>(std::min(watchers, kSeatsMax * kWatchersPerSeat) / kWatchersPerSeat));
}

bool lingers(std::size_t watchers) {
  return watchers >= kWatchersPerSeat;
}

int bounded_seats(int seats, int seats_of_level) {
  return std::clamp(seats, 1, std::max(1, seats_of_level * kPercentOfLevel / 100));
}

Duration wait_max(std::optional<Duration> request_time) {
  const bool said = request_time && *request_time > Duration::zero();
  return std::min<Duration>((said ? *request_time : kRequestTime) / kPartThatWaits, kWaitMax);
}

}  // namespace spillway::flow
