#include "wire/server/bounds/request_line.h"

#include <limits>

namespace spillway::wire {

namespace {

constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();  // but by the number of connections

}  // namespace

std::size_t RequestLine::seats_of(std::size_t index) const {
  switch (static_cast<RequestClass>(index)) {
    case RequestClass::kHeartbeat:
      break;
    case RequestClass::kVital:
      return bounds_.vital_seats;
    case RequestClass::kOrdinary:
      return bounds_.ordinary_seats;
  }
  return kUnbounded;
}

std::size_t RequestLine::places_of(std::size_t index) const {
  switch (static_cast<RequestClass>(index)) {
    case RequestClass::kHeartbeat:
      break;
    case RequestClass::kVital:
      return bounds_.vital_waiting_max;
    case RequestClass::kOrdinary:
      return bounds_.ordinary_waiting_max;
  }
  return kUnbounded;
}

bool RequestLine::enter(RequestClass of, const std::string& client, Act act) {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(of);
  Class& line = classes_[index];
  if (line.waiting >= places_of(index)) return false;
  const auto known = line.by_client.find(client);
  if (known != line.by_client.end() && known->second.size() >= bounds_.client_waiting_max) return false;
  (known != line.by_client.end() ? known->second : line.by_client[client]).push_back(std::move(act));
  ++line.waiting;
  return true;
}

bool RequestLine::can_serve(std::size_t index) const {
  return classes_[index].waiting > 0 && classes_[index].seated < seats_of(index);
}

std::optional<std::size_t> RequestLine::pick() {
  for (const bool again : {false, true}) {
    for (std::size_t index = 0; index < kClasses; ++index) {
      if (again) classes_[index].turns = kTurns[index];
      if (can_serve(index) && classes_[index].turns > 0) {
        // All other classes get their turns back, too.
        for (std::size_t other = index + 1; again && other < kClasses; ++other) classes_[other].turns = kTurns[other];
        return index;
      }
    }
  }
  return std::nullopt;
}

void RequestLine::serve_one() {
  Act act;
  Seat seat;
  {
    const std::lock_guard lock(mutex_);
    const std::optional<std::size_t> picked = pick();
    if (!picked) return;
    Class& line = classes_[*picked];
    --line.turns;
    auto next = line.by_client.upper_bound(line.last_client);
    if (next == line.by_client.end()) next = line.by_client.begin();
    line.last_client = next->first;
    act = std::move(next->second.front());
    next->second.pop_front();
    if (next->second.empty()) line.by_client.erase(next);
    --line.waiting;
    ++line.seated;
    seat.line_ = shared_from_this();
    seat.of_ = static_cast<RequestClass>(*picked);
  }
  act(std::move(seat));
}

void RequestLine::release(RequestClass of) {
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    const auto index = static_cast<std::size_t>(of);
    --classes_[index].seated;
    more = can_serve(index);
  }
  // A request that waited for the seat was passed over when it was called.
  if (more) call_();
}

void RequestLine::clear() {
  std::array<Class, kClasses> dropped;
  const std::lock_guard lock(mutex_);
  for (std::size_t index = 0; index < kClasses; ++index) {
    std::swap(dropped[index].by_client, classes_[index].by_client);
    classes_[index].waiting = 0;
  }
}

std::size_t RequestLine::waiting() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const Class& line : classes_) count += line.waiting;
  return count;
}

}  // namespace spillway::wire
