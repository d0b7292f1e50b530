// `spillway simulate --report FILE.html`: records runs and writes what they were like.
// Thread: one.
#pragma once

#include "base/error.h"
#include "sim/history/recorder.h"

#include <list>
#include <string>

namespace spillway::apps {

class SimulationReport {
 public:
  /// kInvalid, kNotFound, kForbidden: no file can be written at `path`. Asked before a long run, not after it. An empty
  /// path: nothing is recorded.
  static Result<SimulationReport> create(std::string path);

  /// The observer of the next run; null: none. Valid while the report exists.
  sim::RunObserver* record(std::string name, std::string story, std::uint64_t seed);

  /// Replaces the file as a whole with all runs recorded.
  Outcome write() const;

 private:
  explicit SimulationReport(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::list<sim::Recorder> runs_;
};

}  // namespace spillway::apps
