// A recording kept in memory, and the result of its replay.
#pragma once

#include "agent/recording/replay.h"

#include "recording/frame.h"
#include "recording/sink.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::agent {

class MemoryRecording final : public recording::Sink {
 public:
  explicit MemoryRecording(std::size_t segment_bytes = std::size_t{16} << 10U) : segment_bytes_(segment_bytes) {}

  std::size_t segment_bytes() const override { return segment_bytes_; }

  bool begin_segment(std::string bytes) override {
    if (full) return false;
    segments.push_back(std::move(bytes));
    return true;
  }

  bool append(std::string bytes) override {
    if (full) return false;
    segments.back() += bytes;
    return true;
  }

  void keep(std::string_view why) override { kept.emplace_back(why); }

  /// Everything, as one file.
  std::string file() const {
    std::string made;
    for (const std::string& each : segments) {
      if (!recording::append_segment(made, each, recording::kAgentKind)) return "a segment is damaged";
    }
    return made;
  }

  /// The difference between the recording and a replay under its own configuration; empty: none.
  std::string replay_problem() const {
    if (segments.empty()) return {};
    const auto report = replay_recording(file());
    if (!report) return report.error().text();
    std::string problem;
    if (report->drifts > 0) problem += "segments that begin otherwise: " + std::to_string(report->drifts) + "\n";
    for (const ReplayRow& row : report->rows) {
      if (row.same) continue;
      problem += "decided:  " + (row.decided ? row.decided->what + " " + row.decided->line : "nothing") + "\n";
      problem += "would be: " + (row.would_be ? row.would_be->what + " " + row.would_be->line : "nothing") + "\n";
    }
    return problem;
  }

  bool full = false;
  std::vector<std::string> segments;
  std::vector<std::string> kept;

 private:
  std::size_t segment_bytes_;
};

}  // namespace spillway::agent
