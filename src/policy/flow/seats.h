// The estimated cost of a request in seats, computed before it runs, and how long the request may wait for them.
// Thread: any (pure).
// Source: spec "API server at scale", 6.4, 6.5.
#pragma once

#include "base/time.h"

#include <cstddef>
#include <optional>

namespace spillway::flow {

inline constexpr int kSeatsMax = 10;  // maximum for one request
/// A write that many watch holds its seats for so long after its answer.
inline constexpr Duration kLingers = milliseconds(5);

/// The seats of a list that reads `objects` objects: one for every hundred, at least one.
int list_seats(std::size_t objects);

/// Seats of a write to a resource with that many watchers: one for every ten, at least one.
int write_seats(std::size_t watchers);

/// True if a write with that many watchers holds its seats for kLingers after its answer.
bool lingers(std::size_t watchers);

/// `seats`, but at most 15 % of the level's, and at least one.
int bounded_seats(int seats, int seats_of_level);

/// The longest wait of a request with that time in all: a quarter of it, a minute at most. nullopt or not positive: the
/// client set none, and 60 s are used.
Duration wait_max(std::optional<Duration> request_time);

}  // namespace spillway::flow
