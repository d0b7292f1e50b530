// Slow turns of a loop, summed up once a minute: their number, the duration of the longest, and its cause. Pure: the
// time and the kernel's figures of the thread are arguments. Thread: one at a time.
#pragma once

#include "base/time.h"
#include "runtime/loop.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::runtime {

/// Begins the mark of a piece of work that is a step of an engine: "step of agent-n1". Marks of requests begin with
/// their method.
inline constexpr std::string_view kStepMark = "step of ";

class SlowTurns {
 public:
  /// Bound of a turn that is not counted. Requests and pressure events wait for the end of a turn.
  static constexpr Duration kSlow = milliseconds(50);
  /// The time between two reports.
  static constexpr Duration kPeriod = minutes(1);

  struct Report {
    std::int64_t turns = 0;  // at least 1
    Duration longest{};
    std::string cause;  // the cause of the longest turn, in words
  };

  /// Returns how long the thread has waited for a processor since it began; nullopt: unknown. Called once a minute.
  using Waited = std::function<std::optional<Duration>()>;

  explicit SlowTurns(Waited waited) : waited_(std::move(waited)) {}

  /// Counts the turn that ended at `now`. A report, if it is the first after a minute in which turns were slow.
  std::optional<Report> count(const Loop::Turn& turn, Instant now);

 private:
  std::optional<Report> end_period();

  Waited waited_;
  std::optional<Instant> period_end_;  // nullopt: before the first turn
  std::optional<Duration> waited_before_;
  std::int64_t turns_ = 0;
  Duration sum_{};
  Duration longest_{};
  std::string what_;
};

/// The turns of a loop that took the most of its thread's processor time since the start, by cause. Unlike the time on
/// the clock, it does not grow when the machine is busy with other work.
class LongestTurns {
 public:
  /// Causes that are kept.
  static constexpr std::size_t kKept = 8;

  struct Entry {
    Duration took{};
    std::string cause;  // in words, as of a report
  };

  /// `processor_time`: returns the processor time that the thread has used.
  explicit LongestTurns(std::function<Duration()> processor_time) : processor_time_(std::move(processor_time)) {}

  /// Counts the turn that has just ended, with the wait before it. True if it is the longest so far. The first turn
  /// only begins the count.
  bool count(const Loop::Turn& turn);

  /// One entry for each cause, the longest first; empty before the second turn.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::function<Duration()> processor_time_;
  std::optional<Duration> before_;
  std::vector<Entry> entries_;
};

/// SlowTurns::Waited of the calling thread, from /proc/thread-self/schedstat.
std::optional<Duration> waited_for_processor();

}  // namespace spillway::runtime
