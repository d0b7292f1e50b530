// Gives an eviction engine the inputs of another one, from a recording: under the configuration it was recorded with,
// where it must decide the same, or under another one. Under its own configuration every input follows as recorded, and
// the engine's ports give the recorded answers. Under another one the engine is called at the times of the recording
// and observes the readings of the recording; a pod that it ends is removed from its pods, but the readings stay
// unchanged.
// Thread: one. Bounds: the decisions of the recording. Source: docs/adr/0024-recordings.md.
#pragma once

#include "agent/recording/record.h"
#include "base/error.h"
#include "base/time.h"

#include "recording/rows.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

using recording::ReplayOutcome;
using recording::ReplayRow;

struct ReplayReport {
  RecordedNode node;  // the recording's last run
  std::vector<ReplayRow> rows;
  std::uint64_t inputs = 0;
  std::uint64_t observations = 0;
  std::uint64_t runs = 0;        // processes whose engine was recorded
  std::uint64_t gaps = 0;        // places where records are missing: the replay began anew there
  std::uint64_t estimated = 0;   // observations whose pods are those of the last whole one
  std::uint64_t torn_bytes = 0;  // at the end of the file
  std::uint64_t drifts = 0;      // segments that began with another state than the replay had: 0 under its own
  std::optional<WallTime> begin;
  std::optional<WallTime> end;

  std::uint64_t same() const { return recording::count_same(rows); }

  std::uint64_t different() const { return rows.size() - same(); }
};

class Replay {
 public:
  /// Replaces the recorded options of the node's engine by others.
  using Reconfigure = std::function<Result<EvictionOptions>(const RecordedNode& node)>;

  /// `reconfigure`: changes the recorded configuration; empty: it is used as recorded.
  explicit Replay(Reconfigure reconfigure = {});
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Records in their order. kInvalid: one that cannot be, or a configuration that cannot.
  Outcome take(Record record);
  /// Called after the last record.
  Result<ReplayReport> finish();

 private:
  class Session;

  Outcome begin(RunState state);
  Outcome run_step();

  Reconfigure reconfigure_;
  std::unique_ptr<Session> session_;
  std::uint64_t run_ = 0;
  std::uint64_t segment_ = 0;
  std::optional<InputReceived> step_;
  std::vector<Record> followed_;  // `step_`
  std::vector<ReplayOutcome> decided_;
  std::vector<ReplayOutcome> would_be_;
  ReplayReport report_;
};

/// Replays a whole recording. `may_continue`, which may be empty, is called now and then with the number of records
/// done and of all, and returns false to stop. kServiceUnavailable: it stopped the replay. kInvalid: as of
/// read_frames(), decode_record(), Replay::take().
Result<ReplayReport> replay_recording(std::string_view file, Replay::Reconfigure reconfigure = {},
                                      const std::function<bool(std::size_t done, std::size_t all)>& may_continue = {});

}  // namespace spillway::agent
