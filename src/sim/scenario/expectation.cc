#include "sim/scenario/expectation.h"

#include "api/text/duration.h"
#include "base/edit_distance.h"
#include "base/split.h"
#include "sim/scenario/outcome.h"
#include "sim/scenario/summary.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ranges>
#include <utility>
#include <vector>

namespace spillway::sim {
namespace {

using Kind = HappeningKind;
using Compare = Expectation::Compare;

constexpr std::array<std::pair<std::string_view, Kind>, 6> kCounters{{{"evicted", Kind::kEvicted},
                                                                      {"deletions", Kind::kDeleted},
                                                                      {"taints", Kind::kTaint},
                                                                      {"flips", Kind::kFlip},
                                                                      {"oomKills", Kind::kOomKill},
                                                                      {"unplaced", Kind::kUnplaced}}};

/// The words in `no: GLOB DONE`.
constexpr std::array<std::pair<std::string_view, Kind>, 6> kDone{{{"evicted", Kind::kEvicted},
                                                                  {"deleted", Kind::kDeleted},
                                                                  {"tainted", Kind::kTaint},
                                                                  {"unready", Kind::kFlip},
                                                                  {"oomKilled", Kind::kOomKill},
                                                                  {"unplaced", Kind::kUnplaced}}};

constexpr std::array<std::pair<std::string_view, Compare>, 6> kCompares{{{"<", Compare::kLess},
                                                                         {"<=", Compare::kAtMost},
                                                                         {"==", Compare::kEqual},
                                                                         {"!=", Compare::kNotEqual},
                                                                         {">=", Compare::kAtLeast},
                                                                         {">", Compare::kMore}}};

template <typename Table>
Error unknown_word(std::string_view what, std::string_view word, const Table& table) {
  std::string known;
  for (const auto& [name, value] : table) known += (known.empty() ? "" : ", ") + std::string(name);
  return make_error(ErrorCode::kInvalid, "expected {} ({}), got \"{}\"{}", what, known, word,
                    nearest_word(word, table | std::views::keys).suggestion());
}

template <typename Table>
auto find_word(const Table& table, std::string_view word) {
  return std::ranges::find(table, word, [](const auto& each) { return each.first; });
}

/// The end of a line: nothing, or "before 5m".
Outcome read_end(const std::vector<std::string_view>& words, std::size_t at, Expectation& expectation) {
  if (at == words.size()) return {};
  if (words[at] != "before" || at + 2 != words.size()) {
    return make_error(ErrorCode::kInvalid, "expected the end, or \"before 5m\", got \"{}\"", words[at]);
  }
  const auto time = api::parse_duration(words[at + 1]);
  if (!time || *time <= Duration::zero()) {
    return make_error(ErrorCode::kInvalid, "expected a duration after \"before\", e.g. 5m, got \"{}\"", words[at + 1]);
  }
  expectation.before = *time;
  return {};
}

bool holds(std::int64_t seen, Compare compare, std::int64_t wanted) {
  switch (compare) {
    case Compare::kLess:
      return seen < wanted;
    case Compare::kAtMost:
      return seen <= wanted;
    case Compare::kEqual:
      return seen == wanted;
    case Compare::kNotEqual:
      return seen != wanted;
    case Compare::kAtLeast:
      return seen >= wanted;
    case Compare::kMore:
      return seen > wanted;
  }
  return false;
}

}  // namespace

std::string_view counter_name(HappeningKind kind) {
  return std::ranges::find(kCounters, kind, [](const auto& each) { return each.second; })->first;
}

Result<Expectation> parse_expectation(std::string_view text) {
  const auto words = words_in(text, " ");
  Expectation expectation;
  expectation.text = text;
  if (!words.empty() && words[0] == "recovered") {
    expectation.what = Expectation::What::kRecovered;
    SPILLWAY_TRY_VOID(read_end(words, 1, expectation));
    return expectation;
  }
  if (words.size() < 3) {
    return make_error(ErrorCode::kInvalid, "expected e.g. \"evicted <= 3 before 5m\" or \"recovered before 20m\"");
  }
  const auto counter = find_word(kCounters, words[0]);
  if (counter == kCounters.end()) return unknown_word("a counter", words[0], kCounters);
  const auto compare = find_word(kCompares, words[1]);
  if (compare == kCompares.end()) return unknown_word("a comparison", words[1], kCompares);
  const auto [end, error] = std::from_chars(words[2].data(), words[2].data() + words[2].size(), expectation.number);
  if (error != std::errc() || end != words[2].data() + words[2].size() || expectation.number < 0) {
    return make_error(ErrorCode::kInvalid, "expected a whole number, got \"{}\"", words[2]);
  }
  expectation.kind = counter->second;
  expectation.compare = compare->second;
  SPILLWAY_TRY_VOID(read_end(words, 3, expectation));
  return expectation;
}

Result<Expectation> parse_prohibition(std::string_view text) {
  const auto words = words_in(text, " ");
  if (words.size() < 2) return make_error(ErrorCode::kInvalid, "expected e.g. \"default/db-* evicted\"");
  Expectation expectation;
  expectation.text = fmt::format("no {}", text);
  expectation.what = Expectation::What::kNone;
  expectation.glob = words[0];
  const auto done = find_word(kDone, words[1]);
  if (done == kDone.end()) return unknown_word("what may not happen", words[1], kDone);
  expectation.kind = done->second;
  SPILLWAY_TRY_VOID(read_end(words, 2, expectation));
  return expectation;
}

ExpectationResult evaluate(const Expectation& expectation, const RunOutcome& outcome) {
  ExpectationResult result{expectation.text, false, {}};
  const Duration end = expectation.before.value_or(Duration::max());
  if (expectation.what == Expectation::What::kRecovered) {
    result.held = outcome.recovered_at && *outcome.recovered_at < end;
    result.seen = outcome.recovered_at ? fmt::format("recovered at {}", virtual_time_text(outcome.recovered_at))
                                       : "not recovered";
    return result;
  }
  std::int64_t seen = 0;
  std::string first;
  for (const Happening& each : outcome.happenings) {
    if (each.kind != expectation.kind || each.at >= end) continue;
    if (expectation.what == Expectation::What::kNone && !matches_glob(expectation.glob, each.object)) continue;
    if (seen++ == 0) first = fmt::format("{} at {}", each.object, virtual_time_text(each.at));
  }
  if (expectation.what == Expectation::What::kNone) {
    result.held = seen == 0;
    result.seen = seen == 0 ? "none" : fmt::format("{}, the first {}", seen, first);
  } else {
    result.held = holds(seen, expectation.compare, expectation.number);
    result.seen = fmt::format("{} was {}", counter_name(expectation.kind), seen);
  }
  return result;
}

bool matches_glob(std::string_view pattern, std::string_view text) {
  if (pattern == "*") return true;
  if (pattern.find('/') == std::string_view::npos) text = text.substr(text.rfind('/') + 1);
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == text[t] || (pattern[p] == '?' && text[t] != '/'))) {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (star != std::string_view::npos && text[resume] != '/') {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.substr(p).find_first_not_of('*') == std::string_view::npos;
}

}  // namespace spillway::sim
