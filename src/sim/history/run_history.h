// The course of a simulated run, for a later reader: plain data. Long series are kept as changes: a value holds until
// the next one. Thread: any (a value). Bounds: kPointsMax, kEventsMax, kDecisionsMax; later points, events and
// decisions are counted and left out.
#pragma once

#include "base/time.h"
#include "policy/reason.h"
#include "sim/run_summary.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway::sim {

/// A value that a series has from `at_ms` on, in virtual milliseconds since the beginning of the run.
struct Point {
  std::int32_t at_ms = 0;
  std::int32_t value = 0;

  friend bool operator==(const Point&, const Point&) = default;
};

/// Ascending in time, no value twice in a row.
using Series = std::vector<Point>;

/// A status of a condition as the node object has it.
enum class Status : std::uint8_t { kAbsent, kTrue, kFalse, kUnknown };

/// The real state of the machine, independent of the control plane's view.
enum class Machine : std::uint8_t { kUp, kDown, kCutOff };

/// A node at one moment; packed() is the value in a series: two bits each for Ready, MemoryPressure, DiskPressure,
/// PIDPressure, from the lowest; a bit each for tainted and unschedulable; two bits for the machine.
struct NodeState {
  Status ready = Status::kAbsent;
  Status memory_pressure = Status::kAbsent;
  Status disk_pressure = Status::kAbsent;
  Status pid_pressure = Status::kAbsent;
  bool tainted = false;  // NoExecute
  bool unschedulable = false;
  Machine machine = Machine::kUp;

  std::int32_t packed() const;

  friend bool operator==(const NodeState&, const NodeState&) = default;
};

/// One threshold on memory.available.
struct MemoryThreshold {
  std::int32_t kib = 0;
  std::int32_t grace_s = 0;  // 0: hard

  friend bool operator==(const MemoryThreshold&, const MemoryThreshold&) = default;
};

struct NodeHistory {
  std::string name;
  std::int32_t zone = 0;  // place in RunHistory::zones
  std::int32_t memory_kib = 0;
  std::int32_t thresholds = -1;  // place in RunHistory::thresholds; -1: never seen
  Series state;                  // NodeState::packed()
  Series available_kib;          // memory.available; -1: not measured
};

struct ZoneHistory {
  std::string name;
  Series state;    // lifecycle::ZoneState
  Series waiting;  // nodes in the zone's queue
  Series brake;    // the brake that holds the zone's acts: index in RunHistory::brakes; -1: none
};

enum class EventKind : std::uint8_t {
  kNotReady,  // a node's Ready left True
  kReady,     // and is True again
  kTainted,   // NoExecute
  kUntainted,
  kEvicted,    // a pod was evicted by its node
  kDeleted,    // the deletion of a pod began
  kOomKilled,  // the kernel of a node killed processes
  kUnplaced,   // the scheduler found no node for a pod
  kMachine,    // machines were stopped, cut off or restored
};

struct Event {
  std::int32_t at_ms = 0;
  EventKind kind{};
  std::int32_t node = -1;  // place in RunHistory::nodes; -1: none
  std::string subject;     // namespace/name of a pod; else empty
  std::string text;

  friend bool operator==(const Event&, const Event&) = default;
};

struct RecordedDecision {
  std::int32_t at_ms = 0;
  std::int32_t node = -1;
  policy::Decision decision;
};

struct RunHistory {
  static constexpr std::size_t kPointsMax = 4'000'000;  // bound for all series together
  static constexpr std::size_t kEventsMax = 20'000;
  static constexpr std::size_t kDecisionsMax = 5'000;

  std::string name;
  std::string story;
  std::uint64_t seed = 0;
  std::int32_t length_ms = 0;
  std::int32_t timeline_ms = 0;  // the beginning of the timeline: people count times from here
  std::int32_t sample_ms = 0;
  std::vector<std::vector<MemoryThreshold>> thresholds;
  std::vector<std::string> brakes;  // policy::ReasonCode as text
  std::vector<ZoneHistory> zones;
  std::vector<NodeHistory> nodes;
  // Pods as the API server has them.
  Series running;
  Series pending;
  Series terminating;
  std::vector<Event> events;
  std::vector<RecordedDecision> decisions;  // in the order in which they were recorded
  std::vector<std::string> violations;
  RunSummary summary;  // set by the player's caller, who has the outcome
  // Points beyond the bounds.
  std::uint64_t points_left_out = 0;
  std::uint64_t events_left_out = 0;
  std::uint64_t decisions_left_out = 0;
};

}  // namespace spillway::sim
