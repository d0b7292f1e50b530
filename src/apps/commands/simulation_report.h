// `spillway simulate --report FILE.html`: records runs and writes a report about them. Thread: one.
#pragma once

#include "base/error.h"
#include "sim/history/recorder.h"
#include "sim/run_summary.h"
#include "sim/scenario/outcome.h"

#include <list>
#include <string>
#include <vector>

namespace spillway::apps {

class SimulationReport {
 public:
  /// kInvalid, kNotFound, kForbidden: no file can be written at `path`. Called before a long run. An empty path:
  /// nothing is recorded.
  static Result<SimulationReport> create(std::string path);

  /// The observer of the next run; null: none. Valid while the report exists.
  sim::RunObserver* record(std::string name, std::string story, std::uint64_t seed);

  /// Adds the result of the run that was recorded last.
  void conclude(const sim::RunOutcome& outcome);

  /// Replaces the file as a whole with all runs recorded.
  Outcome write() const;

 private:
  explicit SimulationReport(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::list<sim::Recorder> runs_;
  std::vector<sim::RunSummary> summaries_;  // one for each run, in their order
};

}  // namespace spillway::apps
