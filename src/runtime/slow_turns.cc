#include "runtime/slow_turns.h"

#include <algorithm>
#include <fstream>
#include <utility>

namespace spillway::runtime {

namespace {

/// `what`: the text of Loop::mark().
std::string cause_of(const std::string& what) {
  if (what.empty()) return "work other than a request";
  return what.starts_with(kStepMark) ? what : "request " + what;
}

}  // namespace

bool LongestTurns::count(const Loop::Turn& turn) {
  const Duration used = processor_time_();
  const std::optional<Duration> before = std::exchange(before_, used);
  if (!before) return false;
  const Duration took = used - *before;
  if (entries_.size() == kKept && took <= entries_.back().took) return false;
  std::string cause = cause_of(turn.what);
  const auto known = std::ranges::find(entries_, cause, &Entry::cause);
  if (known != entries_.end() && took <= known->took) return false;
  if (known != entries_.end()) entries_.erase(known);
  if (entries_.size() == kKept) entries_.pop_back();
  const auto place = std::ranges::find_if(entries_, [took](const Entry& each) { return each.took < took; });
  return entries_.insert(place, {.took = took, .cause = std::move(cause)}) == entries_.begin();
}

std::optional<SlowTurns::Report> SlowTurns::count(const Loop::Turn& turn, Instant now) {
  std::optional<Report> report;
  if (!period_end_ || now >= *period_end_) {
    report = end_period();
    period_end_ = now + kPeriod;
  }
  if (turn.took <= kSlow) return report;
  ++turns_;
  sum_ += turn.took;
  if (turn.took > longest_) {
    longest_ = turn.took;
    what_ = turn.what;
  }
  return report;
}

std::optional<SlowTurns::Report> SlowTurns::end_period() {
  const std::optional<Duration> waited = waited_();
  const std::optional<Duration> before = std::exchange(waited_before_, waited);
  if (turns_ == 0) return std::nullopt;
  Report report{.turns = std::exchange(turns_, 0), .longest = std::exchange(longest_, {}), .cause = {}};
  const std::string what = std::exchange(what_, {});
  const Duration sum = std::exchange(sum_, {});
  // If the thread waited for a processor for half of the slow time, the machine was busy, not the work long.
  const bool starved = waited && before && *waited - *before >= sum / 2;
  report.cause = starved ? "the processors of this machine were busy with other work" : cause_of(what);
  return report;
}

std::optional<Duration> waited_for_processor() {
  std::ifstream file("/proc/thread-self/schedstat");
  std::int64_t ran = 0;
  std::int64_t waited = 0;
  if (!(file >> ran >> waited)) return std::nullopt;
  return nanoseconds(waited);
}

}  // namespace spillway::runtime
