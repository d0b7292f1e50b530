// The expectations of a scenario, one line each: "evicted <= 3 before 5m", "no default/db-* evicted",
// "recovered before 20m".
// Thread: any (pure).
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::sim {

struct RunOutcome;

/// The happenings that are counted: nodes whose Ready left True, taints NoExecute of silence, pods evicted by agents,
/// pods that began to be deleted, processes killed by the kernel, pods that found no node.
enum class HappeningKind { kFlip, kTaint, kEvicted, kDeleted, kOomKill, kUnplaced };

/// "flips", "taints", "evicted", "deletions", "oomKills", "unplaced".
std::string_view counter_name(HappeningKind kind);

struct Expectation {
  enum class What { kCount, kNone, kRecovered };
  enum class Compare { kLess, kAtMost, kEqual, kNotEqual, kAtLeast, kMore };

  std::string text;  // as written
  What what = What::kCount;
  HappeningKind kind{};
  Compare compare{};
  std::int64_t number = 0;
  std::string glob;                // kNone: of namespace/name, or of a node
  std::optional<Duration> before;  // since the timeline began

  friend bool operator==(const Expectation&, const Expectation&) = default;
};

struct ExpectationResult {
  std::string text;
  bool held = false;
  std::string seen;  // "evicted was 7", for a person
};

/// kInvalid, without a place: the expected form, with the nearest word.
Result<Expectation> parse_expectation(std::string_view text);
/// "GLOB evicted [before T]", the value of `no:`.
Result<Expectation> parse_prohibition(std::string_view text);

ExpectationResult evaluate(const Expectation& expectation, const RunOutcome& outcome);

/// `*` matches any text without a slash, `?` one character; a pattern without a slash is matched against the name
/// alone. "*" matches everything.
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace spillway::sim
