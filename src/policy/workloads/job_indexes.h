// Completion indexes of an Indexed Job as its status keeps them: "0-2,5,6", a dash for runs of three or more. Thread:
// any (pure). Bounds: one interval per run. Source: Kubernetes docs, "Jobs", "Completion mode"; spec "Scheduler and
// workloads", 14; vectors workloads/job_status.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::workloads {

class JobIndexes {
 public:
  /// Parses the indexes; skips text that is no number and numbers not below `completions`. Overlapping runs are kept.
  static JobIndexes parse(std::string_view text, std::int32_t completions);

  JobIndexes with(const std::set<std::int32_t>& indexes) const;
  JobIndexes with(const JobIndexes& other) const;

  bool has(std::int32_t index) const;
  std::int64_t total() const;
  std::string text() const;

  bool empty() const { return runs_.empty(); }

  /// The lowest indexes below `completions` that are not among these, at most `count`.
  std::vector<std::int32_t> lowest_missing(std::int32_t completions, std::size_t count) const;

  /// The number of these indexes that are also in `others`.
  std::int64_t count_in(const JobIndexes& others) const;

  friend bool operator==(const JobIndexes&, const JobIndexes&) = default;

 private:
  struct Run {
    std::int32_t first = 0;
    std::int32_t last = 0;  // included

    friend bool operator==(const Run&, const Run&) = default;
  };

  std::vector<Run> runs_;  // sorted by first index
};

}  // namespace spillway::workloads
