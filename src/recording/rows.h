// The rows of a replay: each puts a recorded decision beside the one that the replay made.
// Thread: any (values).
#pragma once

#include "base/time.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace spillway::recording {

/// A decision in the recording, in the replay, or in both.
struct ReplayOutcome {
  Now at{};
  std::string subject;  // "shop/cart-7", "node"
  std::string key;      // outcomes with the same key are compared
  std::string what;     // "evicted by memory.available, grace 1s"
  std::string reasons;
  std::string line;  // exactly; empty: `what` is the whole text
};

/// A recorded decision, the decision of the replay, or both side by side.
struct ReplayRow {
  std::optional<ReplayOutcome> decided;
  std::optional<ReplayOutcome> would_be;
  bool same = false;

  /// The earlier time of both.
  Instant at() const;
};

/// Pairs outcomes with the same key, in order; an outcome without a partner is a row of its own. `same` compares the
/// two of a pair.
std::vector<ReplayRow> pair_rows(
    std::vector<ReplayOutcome> decided, std::vector<ReplayOutcome> would_be,
    const std::function<bool(const ReplayOutcome& decided, const ReplayOutcome& would_be)>& same);

/// The time of the first difference; nullopt: never.
std::optional<Instant> first_difference(const std::vector<ReplayRow>& rows);

std::uint64_t count_same(const std::vector<ReplayRow>& rows);

}  // namespace spillway::recording
