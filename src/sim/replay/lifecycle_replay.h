// Shows a node lifecycle controller the heartbeats that another one had, by its recording: an API server of its own,
// whose nodes post and renew their leases at the times of the recording; all writes of controllers are made by the
// replaying one. So another configuration sees the same heartbeats, and the consequences of its own decisions.
//
// Where a recording begins in the middle of a run, the nodes are restored in their state, and the replay begins early
// enough for every silence to have its length; the fill of the zones' buckets and of the brakes' windows is unknown:
// they begin full.
// Thread: one. Bounds: the recording and its decisions. Source: docs/adr/0030-controller-recordings.md.
#pragma once

#include "base/error.h"
#include "controllers/recording/lifecycle_record.h"

#include "recording/rows.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::sim {

struct LifecycleReplayReport {
  controllers::RecordedController controller;  // the controller of the last run
  std::vector<recording::ReplayRow> rows;
  std::uint64_t nodes = 0;       // nodes in the whole recording
  std::uint64_t heartbeats = 0;  // signs of life
  std::uint64_t runs = 0;        // leaders that were recorded
  std::uint64_t gaps = 0;        // gaps in the records, behind which the replay began anew
  std::uint64_t torn_bytes = 0;  // at the end of the file
  std::optional<WallTime> begin;
  std::optional<WallTime> end;

  std::uint64_t same() const { return recording::count_same(rows); }

  std::uint64_t different() const { return rows.size() - same(); }
};

/// Two acts within this time count as the same: a write takes a different time in the recording and here.
inline constexpr Duration kSameWithin = seconds(1);

/// Makes the configuration of the replay from the recorded one.
using ReconfigureController =
    std::function<Result<controllers::RecordedController>(const controllers::RecordedController& controller)>;

/// `reconfigure`: empty: its own configuration. `should_continue`, which may be empty: as of agent::replay_recording().
/// kInvalid: no recording of a controller, a damaged one, or a configuration that cannot be.
Result<LifecycleReplayReport> replay_lifecycle(
    std::string_view file, const ReconfigureController& reconfigure = {},
    const std::function<bool(std::size_t done, std::size_t all)>& should_continue = {});

}  // namespace spillway::sim
